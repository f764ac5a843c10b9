"""Header fields, and the questions that are asked of them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

__all__ = ["Headers", "accepts", "is_json", "read_headers"]

Headers = Mapping[str, str]
"""Header fields, names in lower case, values without surrounding white space."""

_KNOWN: Final = 256  # spellings of one field that are remembered; clients send the same few again and again


def read_headers(raw: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return the fields of an ASGI scope. One that came twice reads as one, joined by commas (RFC 9110 5.3).

    Args:
        raw: Pairs of bytes, names in lower case. Some servers leave white space at the end of values.
    """
    fields = {name.decode("latin-1"): value.decode("latin-1").strip(" \t") for name, value in raw}
    if len(fields) != len(raw):
        fields = {}
        for name, value in raw:
            key, text = name.decode("latin-1"), value.decode("latin-1").strip(" \t")
            fields[key] = f"{fields[key]}, {text}" if key in fields else text
    return fields


@lru_cache(_KNOWN)
def is_json(content_type: str | None) -> bool:
    """Tell whether a body is JSON: ``application/json`` in any case, with any parameters (RFC 9110 8.3)."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


@lru_cache(_KNOWN)
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


_RANGES: Final = {
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
