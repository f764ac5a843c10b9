"""One message to the server, and what its reply brings.

"Every JSON-RPC message sent from the client MUST be a new HTTP POST request" (2026-07-28,
basic/transports/streamable-http, "Sending Messages").
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import anyio

from mcpcore.exceptions import AuthError, ConnectionLost, RemoteProtocolError, TransportError
from mcpcore.protocol.messages import Outgoing
from mcpcore.transports.http._family import Response
from mcpcore.transports.http.endpoint import Endpoint, read_body
from mcpcore.transports.http.event_stream import EVENTS, Deliver, EventStream, Take
from mcpcore.transports.http.replies import Refusal, media_type, own_answer, read_refusal
from mcpcore.types.jsonrpc import RequestId

__all__ = ["Poster"]

_JSON: Final = "application/json"
_POST: Final = {"accept": f"{_JSON}, {EVENTS}", "content-type": _JSON}
_GET: Final = {"accept": EVENTS}

_REFUSAL_SIZE: Final = 1024 * 1024
_PATIENCE: Final = 10.0  # seconds of Retry-After that are waited for; more is for the caller to decide
_REST: Final = 1.0  # seconds for the body of a reply that nobody wants, so that its connection can be used again


class Poster:
    """Sends messages to one endpoint.

    Args:
        endpoint: The endpoint.
        deliver: Gets the messages of replies that are not answers.
        max_message_size: Bytes.
    """

    def __init__(self, endpoint: Endpoint, deliver: Deliver, max_message_size: int) -> None:
        self.endpoint = endpoint
        self._deliver = deliver
        self._max_message_size = max_message_size

    async def request(
        self, message: Outgoing, headers: Mapping[str, str], take: Take, *, can_resume: bool = False
    ) -> Refusal | None:
        """Send a request and hand on what comes back, until the answer has come.

        A server that has no room and says when it will have some is asked once more then, if that is soon. It is not asked
        to call a tool again: nobody knows what has become of the first call.

        Args:
            message: The request.
            headers: Header fields for it, and for the requests that resume its stream.
            take: Gets the answer.
            can_resume: A stream that ends too soon may go on in another response.

        Returns:
            What the server said with a status of 400 or more, which may hold an answer; None when ``take`` has been called.

        Raises:
            TransportError: There is no answer.
            RemoteProtocolError: The reply is no answer.
        """
        refusal = await self._request(message, headers, take, can_resume)
        delay = None if refusal is None else refusal.retry_after
        if delay is None or delay > _PATIENCE or message.method == "tools/call":
            return refusal
        await anyio.sleep(delay)
        return await self._request(message, headers, take, can_resume)

    async def _request(
        self, message: Outgoing, headers: Mapping[str, str], take: Take, can_resume: bool
    ) -> Refusal | None:
        assert message.request_id is not None
        stream = self.stream(message.request_id, take)
        try:
            async with self.endpoint.request("POST", {**_POST, **headers}, message.data) as response:
                if response.status_code >= 400:
                    return await self._refusal(response, message.request_id)
                if media_type(response.headers.get("content-type")) == EVENTS:
                    await stream.read(response)
                else:
                    await self._read_json(response, message, take)
                    return None
        except TransportError:
            if not stream.is_answered and not (can_resume and stream.can_resume):
                raise
        if not stream.is_answered:
            if not can_resume:
                raise ConnectionLost(f"{self.endpoint} ended the stream of {message.method} before the answer")
            await stream.resume(partial(self.get, headers))
        return None

    async def tell(self, message: Outgoing, headers: Mapping[str, str]) -> Refusal | None:
        """Send a message that has no answer. Returns a refusal; raises as `request`."""
        async with self.endpoint.request("POST", {**_POST, **headers}, message.data) as response:
            if response.status_code >= 400:
                return await self._refusal(response, None)
            if media_type(response.headers.get("content-type")) != EVENTS:
                with anyio.move_on_after(_REST):
                    await read_body(response, _REFUSAL_SIZE)
        return None

    def get(
        self, headers: Mapping[str, str], place: Mapping[str, bytes] | None = None
    ) -> AbstractAsyncContextManager[Response]:
        """Ask for a stream of events, from ``place`` on."""
        return self.endpoint.request("GET", {**_GET, **headers, **(place or {})})

    def stream(self, request_id: RequestId | None = None, take: Take | None = None) -> EventStream:
        """Return what reads such a stream."""
        return EventStream(self._deliver, self._max_message_size, request_id, take)

    async def _read_json(self, response: Response, message: Outgoing, take: Take) -> None:
        status, kind = response.status_code, media_type(response.headers.get("content-type"))
        if kind != _JSON:
            what = f"with content type {kind}" if kind else "without an answer"
            raise TransportError(f"{self.endpoint} replied to {message.method} {what} ({status})", status=status)
        body = await read_body(response, self._max_message_size)
        if body is None:
            raise TransportError(
                f"the answer to {message.method} is longer than {self._max_message_size} bytes", status=status
            )
        assert message.request_id is not None
        answer = own_answer(body, message.request_id)
        if answer is None:
            raise RemoteProtocolError(f"{self.endpoint} replied to {message.method} with JSON that is no answer to it")
        await take(answer, response.headers)

    async def _refusal(self, response: Response, request_id: RequestId | None) -> Refusal:
        status, kind = response.status_code, response.headers.get("content-type")
        body = await read_body(response, _REFUSAL_SIZE) or b""
        refusal = read_refusal(status, kind, body, request_id, response.headers.get("retry-after"))
        if status == 401:
            raise AuthError(self._refused(refusal), status=status)
        return refusal

    def error(self, refusal: Refusal) -> TransportError:
        """Return the error that says so."""
        return TransportError(self._refused(refusal), status=refusal.status, retry_after=refusal.retry_after)

    def _refused(self, refusal: Refusal) -> str:
        said = f": {refusal.text}" if refusal.text else ""
        later = "" if refusal.retry_after is None else f"; it can be tried again in {refusal.retry_after:.0f} seconds"
        return f"{self.endpoint} refused with status {refusal.status}{said}{later}"
