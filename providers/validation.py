"""Checking JSON against JSON Schema, with messages of our own. The only module that imports jsonschema_rs.

A message is ``<JSON pointer>: <what>``. The validator's own texts never leave this module, because they contain the
instance. jsonschema_rs is imported by the first `Validator`, since it costs a small server a fifth of its start-up.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcpcore.exceptions import DefinitionError

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["Validator", "check_schema", "join_errors", "json_type", "pointer", "scalar_text"]

Path = tuple[str | int, ...]
Finding = tuple[Path, str]

_LISTED: Final = 10
_COLLECTED: Final = 1000  # a million wrong items need not become a million messages to tell that they are wrong
_CUT: Final = 64

_TYPES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


class Validator:
    """A compiled schema.

    Args:
        schema: JSON Schema, 2020-12 unless its ``$schema`` says otherwise. References lead nowhere outside it: nothing
            is fetched or opened (2026-07-28, server/tools, "Tool").
        trusted: False for schemas of a peer, whose patterns then run in linear or bounded time.
        formats: Assert ``format``, which is otherwise an annotation.

    Raises:
        DefinitionError: The schema is invalid, refers to something outside it or is nested too deeply.
    """

    def __init__(self, schema: Any, *, trusted: bool = True, formats: bool = False) -> None:
        self._compiled = _compile(schema, trusted=trusted, formats=formats)

    def is_valid(self, instance: Any) -> bool:
        """Return whether ``instance``, made of JSON-shaped builtins, fits the schema."""
        return bool(self._compiled.is_valid(instance))

    def errors(self, instance: Any, *, show_values: bool, hidden: Collection[str] = ()) -> list[str]:
        """Return what does not fit, sorted by pointer, at most ten entries and "… and N more".

        Args:
            show_values: Quote offending scalars. Only for what the reader of the message sent.
            hidden: Names of members whose values, and whatever is inside them, are never quoted.
        """
        if self.is_valid(instance):  # many times cheaper than to list nothing
            return []
        explainer = _Explainer(instance, show_values=show_values, hidden=hidden)
        errors = islice(self._compiled.iter_errors(instance), _COLLECTED)
        found = {finding for error in errors for finding in explainer.findings(error)}
        # A value of the wrong type is outside the enumeration as well; saying so twice helps nobody.
        mistyped = {path for path, what in found if what.endswith(" expected")}
        entries = sorted(
            f"{pointer(path)}: {what}" for path, what in found if not (path in mistyped and " must be one of [" in what)
        )
        return entries[:_LISTED] + ([f"… and {len(entries) - _LISTED} more"] if len(entries) > _LISTED else [])


def check_schema(schema: Any, *, trusted: bool = True) -> None:
    """Raise `DefinitionError` unless ``schema`` is a valid JSON Schema that refers to nothing outside it."""
    _compile(schema, trusted=trusted, formats=False)


def join_errors(errors: Iterable[str]) -> str:
    """Return the sentence that carries ``errors`` in the texts for models."""
    return f"Validation failed: JSON schema validation errors: [{', '.join(errors)}]"


def pointer(path: Iterable[str | int]) -> str:
    """Return ``path`` as a JSON pointer (RFC 6901). Absurdly long names are cut."""
    return "".join("/" + _cut(str(token).replace("~", "~0").replace("/", "~1")) for token in path)


def scalar_text(value: Any) -> str:
    """Return a scalar as JSON, cut at 64 characters."""
    return _cut(_json(value))


def json_type(value: Any) -> str:
    """Return the JSON type of a JSON-shaped builtin."""
    return _TYPES[type(value)]


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + "…"


def _compile(schema: Any, *, trusted: bool, formats: bool) -> Any:
    import jsonschema_rs

    # Linear time first; look-around needs the other engine, which stops when it backtracks too much.
    engines: list[Any] = [] if trusted else [jsonschema_rs.RegexOptions()]
    engines.append(jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000))
    problem: Exception | None = None
    for engine in engines:
        try:
            return jsonschema_rs.validator_for(schema, offline=True, validate_formats=formats, pattern_options=engine)
        except (ValueError, UnicodeEncodeError) as exc:
            problem = exc
    message = getattr(problem, "message", None) or str(problem)
    where = pointer(getattr(problem, "instance_path", ()))
    raise DefinitionError(f"not a valid JSON Schema{f' at {where}' if where else ''}: {message}") from None


_TEXTS: Final = {
    "minimum": "{value} must be at least {limit}",
    "exclusiveMinimum": "{value} must be more than {limit}",
    "maximum": "{value} must be at most {limit}",
    "exclusiveMaximum": "{value} must be less than {limit}",
    "multipleOf": "{value} must be a multiple of {multiple_of}",
    "minLength": "{value} must have at least {limit} characters",
    "maxLength": "{value} must have at most {limit} characters",
    "pattern": "{value} must match the pattern {pattern}",
    "format": "{value} is not a valid {format}",
    "minItems": "array must have at least {limit} items",
    "maxItems": "array must have at most {limit} items",
    "additionalItems": "array must have at most {limit} items",
    "unevaluatedItems": "array has items that are not allowed",
    "uniqueItems": "array must not repeat items",
    "contains": "array lacks an item that it must contain",
    "minProperties": "object must have at least {limit} properties",
    "maxProperties": "object must have at most {limit} properties",
    "not": "{value} has a form that is not allowed",
    "falseSchema": "no value is allowed here",
    "contentEncoding": "{value} is not encoded as {content_encoding}",
    "contentMediaType": "{value} is not of media type {content_media_type}",
}


class _Explainer:
    """Words the errors of one instance."""

    def __init__(self, instance: Any, *, show_values: bool, hidden: Collection[str]) -> None:
        self._instance = instance
        self._show_values = show_values
        self._hidden = hidden

    def findings(self, error: "ValidationError") -> Iterator[Finding]:
        path, kind = tuple(error.instance_path), error.kind
        match kind.name:
            case "type":
                yield path, f"{json_type(error.instance)} found, {_alternatives(_of(kind, 'types'))} expected"
            case "required":
                yield (*path, _of(kind, "property")), "required property not found"
            case "additionalProperties" | "unevaluatedProperties":
                for name in _of(kind, "unexpected"):
                    yield (*path, name), "unexpected property"
            case "falseSchema" if error.schema_path[-1:] == ["additionalProperties"]:
                # How an object is reported that may have no members at all.
                for name in self._at(path):
                    yield (*path, name), "unexpected property"
            case "enum" | "const":
                yield path, _one_of(self._subject(error), _options(error))
            case "propertyNames":
                for _, what in self.findings(_of(kind, "error")):
                    yield (*path, str(_of(kind, "error").instance)), f"property name: {what}"
            case "anyOf" | "oneOf" if hasattr(kind, "context"):
                yield from self._union(path, error)
            case name:
                text = _TEXTS.get(name, "{value} is not allowed")
                # The kind's own attributes, by the names that the text uses.
                limits = {key: getattr(kind, key) for key in getattr(kind, "__match_args__", ())}
                yield path, text.format(value=self._subject(error), **limits)

    def _union(self, path: Path, error: "ValidationError") -> Iterator[Finding]:
        """Explain a value that fits no branch by the branch that was meant, if that can be told."""
        branches: list[list[ValidationError]] = _of(error.kind, "context")
        if not all(branches):  # only `oneOf` complains although a branch has nothing to complain about
            yield path, "matches more than one of the forms of which it may match one"
            return
        typed = [branch for branch in branches if not any(_is_type(each, path) for each in branch)]
        if not typed:
            expected = {name for branch in branches for each in branch for name in _types(each, path)}
            yield path, f"{json_type(error.instance)} found, {_alternatives(expected)} expected"
            return
        # A member that has none of the values one branch allows, such as a tag, says that another branch was meant.
        meant = [branch for branch in typed if not any(_is_tag(each, path) for each in branch)]
        tags = [each for branch in typed for each in branch if _is_tag(each, path)]
        found = [{finding for each in branch for finding in self.findings(each)} for branch in meant]
        common = found[0].intersection(*found[1:]) if found else set[Finding]()
        if common:
            yield from common
        elif not found and len({tuple(each.instance_path) for each in tags}) == 1:
            allowed = dict.fromkeys(option for each in tags for option in _options(each))
            yield tuple(tags[0].instance_path), _one_of(self._subject(tags[0]), allowed)
        else:
            yield path, "matches no allowed form"

    def _subject(self, error: "ValidationError") -> str:
        """Return how a message refers to the offending value: "value" or "value <scalar>"."""
        path = error.instance_path
        hidden = any(name in self._hidden for name in path)
        if not self._show_values or hidden or isinstance(error.instance, dict | list):
            return "value"
        return f"value {scalar_text(error.instance)}"

    def _at(self, path: Path) -> Any:
        found = self._instance
        for token in path:
            found = found[token]
        return found


def _of(kind: Any, attribute: str) -> Any:
    """Return an attribute that only this kind of error has."""
    return getattr(kind, attribute)


def _is_type(error: "ValidationError", path: Path) -> bool:
    return error.kind.name == "type" and tuple(error.instance_path) == path


def _is_tag(error: "ValidationError", path: Path) -> bool:
    """Return whether a direct member of ``path`` has a value that is not among the allowed ones."""
    where = tuple(error.instance_path)
    return error.kind.name in ("enum", "const") and len(where) == len(path) + 1 and where[:-1] == path


def _types(error: "ValidationError", path: Path) -> list[str]:
    """Return the types that ``error`` would have allowed at ``path``."""
    types: list[str] = _of(error.kind, "types") if _is_type(error, path) else []
    return types


def _alternatives(types: Collection[str]) -> str:
    return " or ".join(sorted(types, key=lambda name: (name == "null", name)))


def _options(error: "ValidationError") -> list[str]:
    values = _of(error.kind, "options") if error.kind.name == "enum" else [_of(error.kind, "expected_value")]
    return [value if isinstance(value, str) else _json(value) for value in values]


def _json(value: Any) -> str:
    # Not msgspec, which has no NaN and no whole numbers beyond 64 bits; and not at the top, for the sake of the start.
    from json import dumps

    return dumps(value, ensure_ascii=False)


def _one_of(subject: str, options: Iterable[str]) -> str:
    return f"{subject} must be one of [{', '.join(options)}]"
