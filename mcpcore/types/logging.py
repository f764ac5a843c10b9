"""``logging/setLevel`` (legacy) and ``notifications/message``."""

from typing import Any, Final, get_args

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object
from mcpcore.types.meta import LogLevel

__all__ = ["LOG_LEVELS", "LogMessageParams", "SetLevelParams"]

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""Least severe first."""


class SetLevelParams(Object):
    level: LogLevel
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class LogMessageParams(Object):
    level: LogLevel
    data: Any
    logger: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)
