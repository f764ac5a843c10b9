"""Every bound that mcpcore enforces, in one object."""

from msgspec import Struct

__all__ = ["Limits"]


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on what a peer can make this side hold. Each has a clear error where it is met.

    Args:
        message_size: Bytes of one message, in either direction of any transport. Answer: -32600.
        json_depth: How deep arrays and objects of one message may nest. Answer: -32600.
        in_flight: Requests of one connection whose handlers run at the same time; more wait in the queue. Over HTTP, the
            requests that belong to no session count together.
        queued: Requests of one connection that wait for a free place. Answer beyond: -32603 ``Server busy``, and over HTTP
            status 503.
        outbox: Bytes waiting for a peer that does not read. Handlers that send wait beyond it; an HTTP stream that belongs
            to no request is ended. Also bytes kept for one legacy session whose streams may be resumed.
        sessions: Legacy HTTP sessions of one server.
        session_idle: Seconds after which an unused legacy HTTP session ends.
        subscriptions: Subscriptions of one connection. Answer beyond: -32603.
        events: Messages kept for one legacy session whose streams may be resumed.
        drain: Seconds that open requests get to finish when the input has ended.
        threads: Worker threads for ``def`` handlers of one server.
        stream_after: Seconds after which a silent HTTP request is answered by a stream.
        probe: Seconds that a client waits for ``server/discover`` before it takes the server for a legacy one.
        input_rounds: How often a client answers ``input_required`` for one call.
    """

    message_size: int = 64 * 1024 * 1024
    json_depth: int = 256
    in_flight: int = 1024
    queued: int = 1024
    outbox: int = 16 * 1024 * 1024
    sessions: int = 10_000
    session_idle: float = 1800.0
    subscriptions: int = 1024
    events: int = 1024
    drain: float = 2.0
    threads: int = 40
    stream_after: float = 15.0
    probe: float = 5.0
    input_rounds: int = 10
