"""Reading what a server says about its tools, with the caution that the protocol asks for.

"Clients MUST consider tool annotations to be untrusted unless they come from trusted servers" (server/tools). A hint of an
untrusted server is therefore read like one that was not sent: as its default, and all defaults are pessimistic.
"""

from typing import Any, Literal, Protocol

from mcpcore.types.tools import Tool, ToolAnnotations

__all__ = ["Effects", "display_name", "effects", "retry_safe"]

Effects = Literal["read", "additive", "destructive"]
"""``read`` changes nothing, ``additive`` only adds, ``destructive`` may remove or overwrite."""


class Named(Protocol):
    """A tool, resource, resource template or prompt."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...


def effects(tool: Tool, *, trusted: bool) -> Effects:
    """Tell what calling ``tool`` may do, by its hints.

    Args:
        tool: As listed.
        trusted: The server may be relied on; otherwise every tool may be destructive.
    """
    hints = _hints(tool, trusted)
    if hints.read_only_hint:
        return "read"
    return "additive" if hints.destructive_hint is False else "destructive"


def retry_safe(tool: Tool, *, trusted: bool) -> bool:
    """Tell whether calling ``tool`` twice with the same arguments does no more than calling it once, by its hints."""
    hints = _hints(tool, trusted)
    return bool(hints.read_only_hint or hints.idempotent_hint)


def display_name(item: Named, *, precedence: Literal["title", "annotations"] = "title") -> str:
    """Return what to show to people: ``title``, else the title in a tool's hints, else the name.

    Args:
        item: As listed.
        precedence: ``annotations`` looks into the hints first.
    """
    annotations: Any = getattr(item, "annotations", None)
    titles = item.title, getattr(annotations, "title", None)
    first, second = titles if precedence == "title" else reversed(titles)
    return first or second or item.name


def _hints(tool: Tool, trusted: bool) -> ToolAnnotations:
    return tool.annotations if trusted and tool.annotations else ToolAnnotations()
