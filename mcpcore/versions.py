"""The protocol revisions that mcpcore speaks, and the two eras they fall into.

Revisions are dates written ``YYYY-MM-DD``, so comparing the strings orders them.
A *legacy* revision opens a session with ``initialize``; a *modern* one carries version, identity and
capabilities in every request's ``_meta`` (2026-07-28, basic/versioning, "Terminology").
"""

from enum import Enum
from typing import Final

__all__ = ["Era", "LATEST_LEGACY", "LATEST_MODERN", "LEGACY_VERSIONS", "MODERN_VERSIONS", "VERSIONS", "era_of"]


class Era(Enum):
    """How a request finds its context: in a session, or in itself."""

    LEGACY = "legacy"
    MODERN = "modern"


LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS: Final = ("2026-07-28",)
VERSIONS: Final = LEGACY_VERSIONS + MODERN_VERSIONS
LATEST_LEGACY: Final = LEGACY_VERSIONS[-1]
LATEST_MODERN: Final = MODERN_VERSIONS[-1]


def era_of(version: str) -> Era:
    """Return the era of ``version``.

    Unknown revisions count as modern when they sort after the last legacy one: a later revision
    can only be modern, and everything older was never published.
    """
    return Era.LEGACY if version <= LATEST_LEGACY else Era.MODERN
