"""The kinds of handler: how arguments are bound, how a value becomes a result, and what lists say about it."""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, get_args, get_origin

import msgspec
from msgspec import UNSET

from mcpcore.exceptions import DefinitionError, ResourceNotFound, ToolError
from mcpcore.providers.annotations import split_annotated
from mcpcore.providers.declarations import (
    CompletionDeclaration,
    Declaration,
    PromptDeclaration,
    ResourceDeclaration,
    ToolDeclaration,
)
from mcpcore.providers.handler import Handler, Settings, meta_of
from mcpcore.providers.invocation import Steps
from mcpcore.providers.markers import CallToolRequest, CompleteRequest, GetPromptRequest, ReadResourceRequest
from mcpcore.providers.results import (
    COMPLETIONS,
    completion_result,
    mime_type_of,
    output_codec,
    prompt_result,
    resource_result,
    streamed_result,
    tool_failure,
    tool_result,
)
from mcpcore.providers.schema import Field, arguments_codec
from mcpcore.providers.signature import Kind
from mcpcore.providers.source import Source
from mcpcore.providers.text_arguments import TextArguments
from mcpcore.providers.uri_template import URITemplate
from mcpcore.types.completion import CompletionContext
from mcpcore.types.content import Annotations
from mcpcore.types.prompts import Prompt, PromptArgument
from mcpcore.types.resources import Resource, ResourceTemplate
from mcpcore.types.tools import CallToolResult, Tool, ToolAnnotations
from mcpcore.types.utilities import InputRequiredResult
from mcpcore.versions import VERSIONS

__all__ = [
    "CompletionHandler",
    "PromptHandler",
    "ResourceHandler",
    "TemplateHandler",
    "ToolHandler",
    "make_handler",
]

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ToolHandler(Handler):
    """A tool. ``params`` are `CallToolParams`, the result is a `CallToolResult` or an `InputRequiredResult`."""

    kind: ClassVar[Kind] = "tool"
    declaration: ToolDeclaration

    def _steps(self) -> Steps:
        signature, declaration, settings, name = self.signature, self.declaration, self.settings, self.name
        if not _TOOL_NAME.fullmatch(name):
            advice = f"tool name {name!r}: use 1 to 128 of A-Z a-z 0-9 _ - . (give one with name=…)"
            if settings.strict_names:
                raise DefinitionError(f"{signature.where}: {advice}")
            self.notices.append((logging.WARNING, f"{advice}; some clients will not accept it"))
        hints = declaration.all_hints
        if declaration.title and hints.title and declaration.title != hints.title:
            text = f"tool {name!r} has two titles, {declaration.title!r} and hints.title={hints.title!r}; both are published"
            self.notices.append((logging.WARNING, text))

        takes_request = any(parameter.injection.kind == "request" for parameter in signature.injected)
        arguments = arguments_codec(
            signature.fields,
            extra="ignore" if takes_request else declaration.extra,
            literal_schema=declaration.input_schema,
        )
        asked = settings.output_schema if declaration.output_schema is None else declaration.output_schema
        codec = output_codec(
            signature.returns,
            output_schema=asked,
            omit_none=settings.omit_none if declaration.omit_none is None else declaration.omit_none,
        )
        if codec.ignored and declaration.output_schema is not None:
            text = f"tool {name!r} ({signature.where}): output_schema has no effect: {codec.ignored}"
            self.notices.append((logging.WARNING, text))
        if codec.withheld:
            revisions = ", ".join(codec.withheld)
            text = f"tool {name!r}: its output schema cannot be published in {revisions}, results stay text there"
            self.notices.append((logging.INFO, text))
        self.input_schema = arguments.schema
        self.secrets = arguments.secrets
        self._output = codec
        decode = arguments.decode

        def bind(params: Any, source: Source | None) -> dict[str, Any]:
            raw = params.arguments
            return decode(None if raw is UNSET else raw, tool=name)

        def shape(value: Any, params: Any, version: str) -> Any:
            if type(value) is InputRequiredResult:
                return value
            return tool_result(value, tool=name, codec=codec, version=version)

        def collect(items: list[Any], params: Any, version: str) -> Any:
            return streamed_result(items, tool=name, codec=codec, version=version)

        return Steps(self._binder(bind), shape, collect, self._fail, self._admit)

    def _answer(self, exc: BaseException, version: str) -> CallToolResult:
        return tool_failure(
            exc,
            tool=self.name,
            function=self.signature.name,
            raises=self.declaration.raises,
            mask_unexpected=self.settings.mask_unexpected,
            format_error=self.settings.format_error,
            version=version,
        )

    def timed_out(self, seconds: float) -> CallToolResult:
        return self._answer(ToolError(f"Timed out after {seconds:g} seconds."), VERSIONS[-1])

    def _request(self, params: Any) -> CallToolRequest:
        arguments = None if params.arguments is UNSET else msgspec.json.decode(params.arguments)
        return CallToolRequest(params.name, arguments or {}, meta_of(params))

    def describe(self, version: str) -> Tool:
        hints = self.declaration.all_hints
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self._output.schema(version),
            annotations=ToolAnnotations(
                title=hints.title or None,
                read_only_hint=hints.read_only,
                destructive_hint=hints.destructive,
                idempotent_hint=hints.idempotent,
                open_world_hint=hints.open_world,
            ),
            icons=list(self.declaration.icons) or None,
            meta=self.meta,
        )


class ResourceHandler(Handler):
    """A resource with a fixed URI. ``params`` are `ReadResourceParams`, the result is a `ReadResourceResult`."""

    kind: ClassVar[Kind] = "resource"
    declaration: ResourceDeclaration

    def _steps(self) -> Steps:
        self.key = self.uri = self.declaration.uri
        declaration, meta = self.declaration, self.meta

        def shape(value: Any, params: Any, version: str) -> Any:
            if type(value) is InputRequiredResult:
                return value
            return resource_result(value, uri=params.uri, mime_type=declaration.mime_type, meta=meta)

        def collect(items: list[Any], params: Any, version: str) -> Any:
            return shape(items, params, version)

        return Steps(self._binder(self._decoder()), shape, collect, self._fail, self._admit)

    def _decoder(self) -> Callable[[Any, Source | None], dict[str, Any]]:
        if self.signature.fields:
            raise DefinitionError(
                f"{self.signature.where}: parameter {self.signature.fields[0].name!r} is not in the URI {self.uri!r}; "
                f"write it as {{{self.signature.fields[0].name}}} there"
            )
        return lambda params, source: {}

    def _request(self, params: Any) -> ReadResourceRequest:
        return ReadResourceRequest(params.uri, {}, meta_of(params))

    @property
    def mime_type(self) -> str:
        """As listed: given, else by the return annotation."""
        return self.declaration.mime_type or mime_type_of(self.signature.returns)

    @property
    def annotations(self) -> Annotations | None:
        """As listed: only what was given."""
        hints = self.declaration.hints
        if hints is None:
            return None
        given = Annotations(list(hints.audience) if hints.audience else None, hints.priority, hints.last_modified)
        return None if given == Annotations() else given

    def describe(self, version: str) -> Any:
        return Resource(
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            annotations=self.annotations,
            size=self.declaration.size,
            icons=list(self.declaration.icons) or None,
            meta=self.meta,
        )


class TemplateHandler(ResourceHandler):
    """A resource whose URI has variables. Params and result are those of `ResourceHandler`."""

    kind: ClassVar[Kind] = "template"

    def _decoder(self) -> Callable[[Any, Source | None], dict[str, Any]]:
        template = self.template = URITemplate(self.uri)
        fields = self._fields_of(template)
        open_to_more = any(parameter.injection.kind == "request" for parameter in self.signature.injected)
        texts = TextArguments(fields, noun="variable", owner=f"resource template {self.uri!r}", extra=open_to_more)

        def decode(params: Any, source: Source | None) -> dict[str, Any]:
            found = template.match(params.uri)
            if found is None:
                raise ResourceNotFound(params.uri)
            return texts.decode(found)

        return decode

    def _fields_of(self, template: URITemplate) -> list[Field]:
        """Return the fields under the names that the template gives them."""
        where = self.signature.where
        fields: list[Field] = []
        variables = dict.fromkeys(template.variables)
        for field in self.signature.fields:
            variable = next((name for name in (field.alias, field.name) if name in variables), None)
            if variable is None:
                raise DefinitionError(f"{where}: parameter {field.name!r} is no variable of the template {self.uri!r}")
            if variable in template.optional and field.required:
                raise DefinitionError(f"{where}: variable {variable!r} may be absent, so give {field.name!r} a default")
            del variables[variable]
            fields.append(msgspec.structs.replace(field, alias=variable))
        if variables and not any(parameter.injection.kind == "request" for parameter in self.signature.injected):
            missing = ", ".join(repr(name) for name in variables)
            raise DefinitionError(f"{where}: the template {self.uri!r} has {missing}, and no parameter takes it")
        return fields

    def _request(self, params: Any) -> ReadResourceRequest:
        return ReadResourceRequest(params.uri, self.template.match(params.uri) or {}, meta_of(params))

    def describe(self, version: str) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            annotations=self.annotations,
            icons=list(self.declaration.icons) or None,
            meta=self.meta,
        )


class PromptHandler(Handler):
    """A prompt. ``params`` are `GetPromptParams`, the result is a `GetPromptResult`.

    A parameter annotated ``dict[str, str]`` or ``Mapping[str, str]`` receives all arguments as they came.
    """

    kind: ClassVar[Kind] = "prompt"
    declaration: PromptDeclaration

    def _steps(self) -> Steps:
        signature, description = self.signature, self.documented
        everything = [field.name for field in signature.fields if _is_text_mapping(field.type)]
        self.fields = [field for field in signature.fields if field.name not in everything]
        open_to_more = bool(everything) or any(each.injection.kind == "request" for each in signature.injected)
        texts = TextArguments(self.fields, noun="argument", owner=f"prompt {self.name!r}", extra=open_to_more)

        def decode(params: Any, source: Source | None) -> dict[str, Any]:
            values = texts.decode(params.arguments)
            for name in everything:
                values[name] = dict(params.arguments or {})
            return values

        def shape(value: Any, params: Any, version: str) -> Any:
            if type(value) is InputRequiredResult:
                return value
            return prompt_result(value, description=description)

        def collect(items: list[Any], params: Any, version: str) -> Any:
            return prompt_result(items, description=description)

        return Steps(self._binder(decode), shape, collect, self._fail, self._admit)

    def _request(self, params: Any) -> GetPromptRequest:
        return GetPromptRequest(params.name, dict(params.arguments or {}), meta_of(params))

    def describe(self, version: str) -> Prompt:
        arguments = [
            PromptArgument(field.alias or field.name, description=field.description, required=field.required)
            for field in self.fields
        ]
        return Prompt(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=arguments or None,
            icons=list(self.declaration.icons) or None,
            meta=self.meta,
        )


class CompletionHandler(Handler):
    """A completion. ``params`` are `CompleteParams`, the result is a `CompleteResult`.

    One ``str`` parameter, whatever its name, receives what has been typed so far.
    """

    kind: ClassVar[Kind] = "completion"
    declaration: CompletionDeclaration

    def _steps(self) -> Steps:
        signature, declaration = self.signature, self.declaration
        target, argument = declaration.prompt or declaration.uri or "", declaration.argument or None
        self.name = f"{target}#{argument}" if argument else target
        self.key = ("prompt" if declaration.prompt else "uri", target, argument)
        if len(signature.fields) > 1 or any(
            split_annotated(field.type)[0] not in (str, Any) for field in signature.fields
        ):
            listed = ", ".join(field.name for field in signature.fields)
            raise DefinitionError(
                f"{signature.where}: a completion takes one str (what was typed), CompletionArgument, CompletionContext, "
                f"CompleteRequest or a context, not ({listed})"
            )
        prefix = signature.fields[0].name if signature.fields else None

        def decode(params: Any, source: Source | None) -> dict[str, Any]:
            return {} if prefix is None else {prefix: params.argument.value}

        def shape(value: Any, params: Any, version: str) -> Any:
            return completion_result(value)

        def collect(items: list[Any], params: Any, version: str) -> Any:
            return completion_result(iter(items))  # whether there would have been more is not known

        return Steps(self._binder(decode), shape, collect, self._fail, self._admit, most=COMPLETIONS)

    def _request(self, params: Any) -> CompleteRequest:
        return CompleteRequest(params.ref, params.argument, params.context or CompletionContext(), meta_of(params))


def make_handler(
    function: Any, declaration: Declaration, settings: Settings, names: Mapping[str, Any] | None = None
) -> Handler:
    """Return the handler for a function and what was declared about it.

    Raises:
        DefinitionError: It cannot be a handler as it is written; the message says what would work.
    """
    if isinstance(declaration, ResourceDeclaration):
        kind: type[Handler] = TemplateHandler if URITemplate(declaration.uri).variables else ResourceHandler
    else:
        kind = _KINDS[type(declaration)]
    return kind(function, declaration, settings, names)


_KINDS: Final[dict[type[Declaration], type[Handler]]] = {
    ToolDeclaration: ToolHandler,
    PromptDeclaration: PromptHandler,
    CompletionDeclaration: CompletionHandler,
}


def _is_text_mapping(annotation: Any) -> bool:
    tp, _ = split_annotated(annotation)
    return (get_origin(tp) or tp) in (dict, Mapping) and get_args(tp) in ((), (str, str))
