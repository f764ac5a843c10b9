"""Header fields as ASGI has them, and the questions that are asked of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Headers", "accepts", "is_json"]


class Headers(Mapping[str, str]):
    """A read-only view with names in lower case. A field that came twice reads as one, joined by commas (RFC 9110 5.3).

    Args:
        raw: Pairs of bytes, names in lower case, as in an ASGI scope.
    """

    __slots__ = ("_fields",)

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        fields: dict[bytes, bytes] = dict(raw)
        if len(fields) != len(raw):
            fields = {}
            for name, value in raw:
                fields[name] = fields[name] + b", " + value if name in fields else value
        self._fields = fields

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value without surrounding white space, which some servers leave on it."""
        value = self._fields.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1").strip(" \t")

    def __getitem__(self, name: str) -> str:
        value: str | None = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def is_json(content_type: str | None) -> bool:
    """Tell whether a body is JSON: ``application/json`` in any case, with any parameters (RFC 9110 8.3)."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


def accepts(accept: str | None) -> tuple[bool, bool]:
    """Tell whether a client takes ``application/json``, and whether it takes ``text/event-stream``.

    Media ranges with wildcards and quality values are understood (RFC 9110 12.5.1). No header means anything.
    """
    if accept is None:
        return True, True
    best: dict[str, tuple[int, bool]] = {}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        wanted = not any(_is_zero(parameter) for parameter in parameters)
        for media, ranges in _RANGES.items():
            if name in ranges:
                specific = ranges.index(name)
                if media not in best or specific < best[media][0]:
                    best[media] = (specific, wanted)
    json, events = (best.get(media, (0, False))[1] for media in _RANGES)
    return json, events


_RANGES = {
    # media type: what names it, most specific first
    "application/json": ("application/json", "application/*", "*/*"),
    "text/event-stream": ("text/event-stream", "text/*", "*/*"),
}


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return False
    try:
        return float(value) == 0
    except ValueError:
        return False
