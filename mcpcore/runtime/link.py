"""A client's connection while it lives: opened, negotiated, used, closed, and its end explained."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import msgspec
from msgspec import UNSET

from mcpcore.abc import ClientTransport
from mcpcore.exceptions import (
    ConnectionLost,
    MCPCoreError,
    McpError,
    RemoteProtocolError,
    RequestTimeout,
    SessionExpired,
)
from mcpcore.protocol.client import ClientConfig, ClientConnection
from mcpcore.protocol.events import (
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequired,
    MessageIgnored,
    NegotiationFailed,
    ProgressReceived,
    RequestReceived,
    ResultReceived,
    VersionNegotiated,
)
from mcpcore.runtime.background import Background, unwrap
from mcpcore.runtime.client_handlers import ClientHandlers
from mcpcore.runtime.conversation import peer_error
from mcpcore.runtime.driver import Driver
from mcpcore.runtime.notices import Notices
from mcpcore.runtime.standing import Standing
from mcpcore.types._base import Object
from mcpcore.types.jsonrpc import INTERNAL_ERROR, ErrorData
from mcpcore.versions import Era

__all__ = ["Answered", "Link"]

logger = logging.getLogger("mcpcore.client")


class Answered(msgspec.Struct, frozen=True):
    """A result, its JSON, the items that had to be left out, and how many rounds it took."""

    result: Any
    raw: msgspec.Raw
    skipped: tuple[str, ...]
    rounds: int


class Link:
    """One connection to a server.

    Args:
        transport: Opens the channel.
        config: What the client is and speaks.
        handlers: Answer the server's questions.
        observe: Called, in order, for events that belong to no request of ours.
        notices: Callbacks that these events queue; called beside the connection.
    """

    def __init__(
        self,
        transport: ClientTransport,
        config: ClientConfig,
        handlers: ClientHandlers,
        observe: Callable[[Event], None],
        notices: Notices,
    ) -> None:
        self._transport = transport
        self._notices = notices
        self._config = config
        self._handlers = handlers
        self._observe_other = observe
        self._background = Background()
        self._opened = anyio.Event()
        self._settled = anyio.Event()
        self._negotiation: VersionNegotiated | NegotiationFailed | None = None
        self._failure: BaseException | None = None
        self._driver: Driver | None = None
        self._standing = Standing()
        self.limits = config.limits
        self.connection = ClientConnection(config)
        self.lost_while_probing = False

    async def open(self, timeout: float | None) -> None:
        """Connect and negotiate.

        Args:
            timeout: Seconds for all of it.

        Raises:
            TransportError: The server cannot be reached, or went away.
            PeerError: It refused.
            RemoteProtocolError: There is no revision in common.
            RequestTimeout: It did not answer.
        """
        self._background.start(self._run)
        try:
            with anyio.move_on_after(timeout) as opening:
                await self._connect()
        except BaseException:
            await self._background.stop()
            raise
        if opening.cancelled_caught:
            await self._background.stop()
            raise RequestTimeout(f"the server did not answer the opening of the connection within {timeout} seconds")

    async def _connect(self) -> None:
        await self._opened.wait()
        if self._driver is None:
            raise self._failure or ConnectionLost("the transport did not open")
        self.connection.negotiate()
        probed = self.connection.is_probing
        await self._driver.flush()
        with anyio.move_on_after(self._config.limits.probe if probed else None) as probing:
            await self._settled.wait()
        if probing.cancelled_caught:
            probed = False
            for event in self.connection.probe_timed_out():
                self._observe(event)
            await self._driver.flush()
            await self._settled.wait()
        outcome = self._negotiation
        if outcome is None:
            self.lost_while_probing = probed
            raise self._driver.lost()
        if isinstance(outcome, NegotiationFailed):
            if outcome.cause is not None:
                raise outcome.cause
            if outcome.error is not None and self.connection.server is None and not _names_versions(outcome.error):
                raise peer_error(msgspec.structs.replace(outcome.error, message=outcome.reason))
            raise RemoteProtocolError(outcome.reason)
        await self._driver.flush()

    async def close(self) -> None:
        """Close the connection and wait until everything that belongs to it is gone. Safe to call twice, from any task.

        Callbacks are told what has come before; all of them together get ``limits.drain`` seconds. Called by one of them,
        this only begins to close.
        """
        try:
            if self._driver is not None and not self._background.is_current:
                with anyio.move_on_after(self.limits.drain):
                    await self._notices.told()
        finally:
            await self._background.stop()

    async def request(
        self,
        method: str,
        params: Object | None,
        *,
        timeout: float | None,
        on_progress: Callable[[ProgressReceived], Awaitable[None]] | None = None,
        retry_safe: bool = False,
        **options: Any,
    ) -> Answered:
        """Send a request, answer what the server asks for in between, and return the result.

        When the server has lost the session, the request is repeated in the next one; a tool is called again only if that
        is ``retry_safe``.

        Raises:
            PeerError: The server answered with an error.
            RemoteProtocolError: Its answer cannot be used, or it asks for input without end.
            RequestTimeout: No answer within ``timeout`` seconds, for each round.
            ConnectionLost: The connection ended first.
            TransportError: The request did not get through, or its answer did not.
            LocalProtocolError: The server or the revision has no such method.
        """
        try:
            answered = await self._request(method, params, timeout, on_progress, options)
        except SessionExpired:
            await self._tell_again(timeout)
            if method == "tools/call" and not retry_safe:
                raise
            answered = await self._request(method, params, timeout, on_progress, options)
        self._standing.note(method, params)
        return answered

    async def _tell_again(self, timeout: float | None) -> None:
        """Tell a new session what the old one had been told."""
        for method, params in self._standing:
            try:
                await self._request(method, params, timeout, None, {})
            except MCPCoreError as error:
                logger.warning("%s could not be repeated in the new session: %s", method, error)

    async def _request(
        self,
        method: str,
        params: Object | None,
        timeout: float | None,
        on_progress: Callable[[ProgressReceived], Awaitable[None]] | None,
        options: dict[str, Any],
    ) -> Answered:
        connection, driver = self.connection, self._driver
        if driver is None:
            raise ConnectionLost("the client is not connected: use it inside 'async with'")
        progress = on_progress is not None

        send = partial(connection.send_request, method, params, progress=progress, **options)

        most = self.limits.input_rounds
        for rounds in range(1, most + 2):
            try:
                answer = await driver.request(send, timeout=timeout, on_progress=on_progress)
            except TimeoutError:
                raise RequestTimeout(f"{method} was not answered within {timeout} seconds") from None
            if isinstance(answer, ResultReceived):
                return Answered(answer.result, answer.raw, answer.skipped, rounds)
            if isinstance(answer, ErrorReceived):
                raise peer_error(answer.error)
            if not isinstance(answer, InputRequired):
                raise RemoteProtocolError(answer.error.message)
            if rounds > most:
                break
            responses = {key: await self._handlers.fulfil(each) for key, each in answer.input_requests.items()}
            if not responses:  # the server only wants to be asked again: do not hammer it
                await anyio.sleep(min(0.025 * 2**rounds, 1.0))
            send = partial(connection.retry, answer, responses, progress=progress)
        raise RemoteProtocolError(f"{method}: the server asked for input more than {most} times")

    async def notify(self, method: str, params: Object | None = None) -> None:
        """Send a notification."""
        if self._driver is None:
            raise ConnectionLost("the client is not connected: use it inside 'async with'")
        self.connection.send_notification(method, params)
        await self._driver.flush()

    def flush_soon(self) -> None:
        """Have what is queued written soon, for callers that cannot wait."""
        if self._driver is not None:
            self._driver.wake_writer()

    async def flush(self) -> None:
        """Write what is queued."""
        if self._driver is not None:
            await self._driver.flush()

    def lost(self) -> MCPCoreError:
        """Why there is no connection."""
        return self._driver.lost() if self._driver else ConnectionLost("the client is not connected")

    # -- the background ------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        telling = Background()
        try:
            async with self._transport.open() as channel:
                if channel.info.mirrors:
                    self.connection.header_maps = {}
                self._driver = Driver(self.connection, channel, self.limits, self._answer, self._observe)
                telling.start(self._notices.run)
                try:
                    await self._driver.run(started=self._opened.set)
                    self._notices.end()
                    await telling.wait()
                finally:
                    await telling.stop()
        except Exception as error:
            failure = unwrap(error)
            if self._driver is not None and not isinstance(failure, MCPCoreError):
                raise
            self._failure = failure  # raised by whoever opens, or needs, the connection
        finally:
            self._opened.set()
            self._settled.set()

    async def _answer(self, event: RequestReceived) -> None:
        """Answer a request of a legacy server."""
        try:
            result = await self._handlers.answer(event.method.name, event.params)
            if self.connection.is_open(event.id):
                self.connection.send_result(event.id, result)
        except BaseException as error:
            if not (isinstance(error, Exception) or _is_stray(error)):
                raise  # cancellation, or what ends the process
            self._refuse(event, error)

    def _refuse(self, event: RequestReceived, error: BaseException) -> None:
        if not self.connection.is_open(event.id):
            return
        if isinstance(error, McpError):
            data = UNSET if error.data is None else error.data
            try:
                self.connection.send_error(event.id, ErrorData(error.code, error.message, data))
                return
            except Exception as unwritable:  # noqa: BLE001  # it is logged below, like every failure
                error = unwritable
        logger.error("the function that answers %s failed", event.method.name, exc_info=error)
        self.connection.send_error(event.id, ErrorData(INTERNAL_ERROR, "Internal error"))

    def _observe(self, event: Event) -> None:
        if isinstance(event, VersionNegotiated | NegotiationFailed):
            self._negotiation = event
            self._settled.set()
        elif isinstance(event, MessageIgnored):
            logger.debug("ignored a message of the server: %s", event.reason)
        else:
            if isinstance(event, ConnectionClosed):
                self._settled.set()
            self._observe_other(event)

    @property
    def is_legacy(self) -> bool:
        """The server speaks a legacy revision."""
        return self.connection.server is not None and self.connection.server.era is Era.LEGACY


def _is_stray(error: BaseException) -> bool:
    from mcpcore.runtime.errors import is_stray  # it comes with the server's side, which few clients need

    return is_stray(error)


def _names_versions(error: ErrorData) -> bool:
    data: Any = error.data
    return isinstance(data, dict) and "supported" in data
