"""Elicitation forms: flat schemas a client can draw, and the replies to them."""

from typing import Any

__all__ = ["form_schema", "form_value"]


def form_schema(tp: Any) -> dict[str, Any]:
    """Return ``requestedSchema`` for a record type. Raises `DefinitionError` naming the field that is not flat."""
    raise NotImplementedError


def form_value(tp: Any, content: dict[str, Any] | None) -> Any:
    """Return an instance of ``tp`` from the reply's content. Raises `InvalidValue`."""
    raise NotImplementedError
