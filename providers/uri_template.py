"""URI templates: RFC 6570 as far as resources need it."""

from collections.abc import Mapping

__all__ = ["URITemplate"]


class URITemplate:
    """``{name}``, ``{+path}`` and a trailing ``{?a,b}``.

    Attributes:
        template: As given.
        variables: Names in order.
        optional: Those of ``{?…}``, which a URI may leave out.
    """

    template: str
    variables: tuple[str, ...]
    optional: frozenset[str]

    def __init__(self, template: str) -> None:
        raise NotImplementedError

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded variables of ``uri``, or None if it does not match."""
        raise NotImplementedError

    def expand(self, values: Mapping[str, object]) -> str:
        raise NotImplementedError
