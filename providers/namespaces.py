"""What a handler is called inside a namespace: ``<namespace>_<name>``, and ``scheme://<namespace>/…`` for URIs."""

import re

from msgspec.structs import replace

from mcpcore.providers.declarations import Declaration
from mcpcore.providers.handler import Handler
from mcpcore.providers.handlers import CompletionHandler, ResourceHandler

__all__ = ["below"]


def below(handler: Handler, namespace: str) -> Declaration:
    """Return the declaration of ``handler`` under ``namespace``."""
    if isinstance(handler, ResourceHandler):
        return replace(handler.declaration, uri=_uri_below(handler.uri, namespace))
    if isinstance(handler, CompletionHandler):
        prompt, uri = handler.declaration.prompt, handler.declaration.uri
        return replace(
            handler.declaration,
            prompt=f"{namespace}_{prompt}" if prompt else None,
            uri=_uri_below(uri, namespace) if uri else None,
        )
    return replace(handler.declaration, name=f"{namespace}_{handler.name}")


def _uri_below(uri: str, namespace: str) -> str:
    scheme, rest = re.fullmatch(r"((?:[A-Za-z][A-Za-z0-9+.-]*:(?://)?)?)(.*)", uri, re.DOTALL).groups()  # type: ignore[union-attr]  # every part is optional
    return f"{scheme}{namespace}/{rest}"
