"""Paths beside the endpoint: those of the user, served by Starlette."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from mcpcore.transports.http.requests import Refusal
from mcpcore.transports.http.response import Receive, Send

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Router

__all__ = ["Handler", "Routes"]

Handler = Callable[["Request"], "Awaitable[Response] | Response"]
"""Answers a request. A plain function runs in a worker thread."""


class Routes:
    """An ASGI application of the user's own handlers. More may be added while it is served."""

    def __init__(self) -> None:
        self._router: Router | None = None  # made by the first route: Starlette is imported for those who use it

    def add(self, path: str, handler: Handler, methods: Sequence[str]) -> None:
        """Have ``handler`` called for requests to ``path``.

        Args:
            path: As Starlette has it: ``/orders/{id}``, below the place where the application is mounted.
            handler: Gets a Starlette ``Request``, returns a Starlette ``Response``.
            methods: HTTP methods; HEAD comes with GET.

        Raises:
            ModuleNotFoundError: Starlette is not installed; the extra ``http`` brings it.
        """
        if self._router is None:
            from starlette.routing import Router

            self._router = Router(redirect_slashes=False, default=_nothing_here)
        self._router.add_route(path, handler, list(methods))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request. Raises `Refusal` where there is no such path."""
        await (self._router or _nothing_here)(scope, receive, send)


async def _nothing_here(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    raise Refusal(404, "there is nothing here")
