"""Checking JSON against JSON Schema, with messages of our own. The only module that imports jsonschema_rs."""

from typing import Any

__all__ = ["Validator", "check_schema"]


class Validator:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any], *, trusted: bool = True) -> None:
        raise NotImplementedError

    def is_valid(self, instance: Any) -> bool:
        raise NotImplementedError

    def errors(self, instance: Any, *, show_values: bool) -> list[str]:
        raise NotImplementedError


def check_schema(schema: Any) -> None:
    """Raise `DefinitionError` unless ``schema`` is a valid JSON Schema."""
    raise NotImplementedError
