"""A client's check of structured content against the schemas that a server has published for it."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from mcpcore.exceptions import DefinitionError, OutputValidationError
from mcpcore.types.tools import Tool

if TYPE_CHECKING:
    from mcpcore.providers.validation import Validator

__all__ = ["Outputs"]

logger = logging.getLogger("mcpcore.client")


class Outputs:
    """The output schemas of one server's tools.

    Args:
        validate: ``strict`` raises where content does not fit, ``lenient`` logs a warning.

    Attributes:
        epoch: Changes whenever the schemas are forgotten.
        outdated: They were known once, and had to be forgotten.
    """

    def __init__(self, validate: Literal["strict", "lenient"]) -> None:
        if validate not in ("strict", "lenient"):
            raise ValueError(f"validate={validate!r}: give 'strict' or 'lenient'")
        self._validate = validate
        self._schemas: dict[str, dict[str, Any]] = {}
        self._validators: dict[str, Validator | None] = {}
        self._learned = False
        self.epoch = 0
        self.outdated = False

    def learn(self, tools: Iterable[Tool], epoch: int) -> None:
        """Take the schemas from a list of all tools.

        Args:
            tools: The list.
            epoch: `epoch` when it was asked for; what was forgotten since makes it outdated as well.
        """
        self._learned = True
        self.outdated = epoch != self.epoch
        self._validators = {}
        self._schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}

    def forget(self) -> None:
        """The schemas may no longer be true."""
        self.epoch += 1
        self.outdated = self._learned
        self._schemas, self._validators = {}, {}

    def check(self, tool: str, structured: Any, result: Any) -> None:
        """Check a result that is no error. Tools without a schema, or with one that is of no use, are not checked.

        Raises:
            OutputValidationError: ``structured`` does not fit, or is UNSET; the error holds ``result``.
        """
        if tool not in self._schemas:
            return
        validator = self._validator(tool)
        if validator is None:
            return
        if structured is UNSET:
            errors = ["structured content is missing"]
        else:
            errors = validator.errors(structured, show_values=False)
        if errors and self._validate == "strict":
            raise OutputValidationError(tool, errors, result)
        if errors:
            logger.warning("tool %r: output does not fit its schema: %s", tool, ", ".join(errors))

    def _validator(self, tool: str) -> "Validator | None":
        if tool not in self._validators:
            from mcpcore.providers.validation import Validator  # costs start-up time; few clients need it

            try:
                self._validators[tool] = Validator(self._schemas[tool], trusted=False)
            except DefinitionError as error:
                logger.warning("tool %r: its output schema is of no use and is not checked: %s", tool, error)
                self._validators[tool] = None
        return self._validators[tool]
