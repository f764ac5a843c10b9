"""The order service with something changed about it, in every form of its data, here or as a process of its own.

Run it to serve one on stdin and stdout, with JSON on standard error for what it logs: ``{"variant": "V6", "form": "struct"}``.
"""

import contextvars
import dataclasses
import json
import logging
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import make_dataclass
from enum import StrEnum
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, get_type_hints

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from msgspec import UNSET, UnsetType

from mcpcore import CallToolResult, Client, Context, McpError, stdio, tool
from mcpcore.providers.markers import CallToolRequest
from tests.support.order_service import ROOT, Data, Shop, as_written, data_of, example_module, rewritten
from tests.support.reaching import reached

__all__ = ["ELICITATIONS", "VARIANTS", "Log", "Service", "command_of", "shop_of"]


# -- what is logged ----------------------------------------------------------------------------------------------------

_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({})))


class _JsonLines(logging.Handler):
    """Writes each record as a line of JSON: its logger, level, text, traceback and whatever else was given."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        extra = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        facts = {"logger": record.name, "level": record.levelname, "text": record.getMessage(), "traceback": trace}
        self._write(json.dumps({**extra, **facts}, default=str))


@contextmanager
def _logging_to(write: Callable[[str], object]) -> Iterator[None]:
    logger, handler = logging.getLogger("mcpcore"), _JsonLines(write)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class Log:
    """What a server logged, wherever it runs; complete when it has ended."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def records(self, *loggers: str) -> list[Any]:
        """The records of these loggers, in order."""
        found = [SimpleNamespace(**json.loads(line)) for line in self.lines if line.startswith("{")]
        return [record for record in found if record.logger in loggers]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines)


# -- what is changed ---------------------------------------------------------------------------------------------------


class Variant(NamedTuple):
    """One way to change the service.

    Args:
        tools: Makes the class of the tools, from the module of the example and the types of the form.
        omit_none: The option of the registry; None for that of the form.
        middleware: Of the server.
    """

    tools: Callable[[ModuleType, Data], Any]
    omit_none: bool | None = None
    middleware: tuple[Any, ...] = ()


def _members_of(order: type) -> dict[str, Any]:
    """The names and types of a record, by the names that Python has for them."""
    if issubclass(order, msgspec.Struct):
        return {field.name: field.type for field in msgspec.structs.fields(order)}
    return get_type_hints(order, include_extras=True)


def _with_shipment(order: type, presence: str) -> type:
    """The record of an order whose shipment is ``required``, ``optional`` (may be absent) or ``nullable``."""
    members: dict[str, Any] = _members_of(order)
    shipment = _of_shipment(members.pop("shipment"))
    if issubclass(order, dict):
        wanted = {"required": shipment, "optional": NotRequired[shipment], "nullable": NotRequired[shipment | None]}
        return TypedDict("Order", {**members, "shipment": wanted[presence]})  # type: ignore[operator, no-any-return]  # made at run time
    fields: list[Any] = list(members.items())
    fields.append({
        "required": ("shipment", shipment),
        "optional": ("shipment", shipment | UnsetType, UNSET),
        "nullable": ("shipment", shipment | None, None),
    }[presence])  # fmt: skip
    if issubclass(order, msgspec.Struct):
        return msgspec.defstruct("Order", fields, rename="camel")
    fields[-1] = (*fields[-1][:2], *(dataclasses.field(default=default) for default in fields[-1][2:]))
    return make_dataclass("Order", fields)


def _of_shipment(declared: Any) -> Any:
    """The type of a shipment, whichever way it may be missing."""
    return next(each for each in (*getattr(declared, "__args__", ()), declared) if isinstance(each, type))


def _stored(order: Any, data: Data, tp: type, absent: Any) -> Any:
    """An order as ``tp``, with ``absent`` where it has no shipment. Nothing checks that this fits."""
    whole = as_written(order, data.order)
    members = whole if isinstance(whole, dict) else {name: getattr(whole, name) for name in _members_of(data.order)}
    shipment = members.get("shipment")
    members["shipment"] = absent if shipment in (None, UNSET) else shipment
    if issubclass(tp, dict):
        return {name: value for name, value in members.items() if value is not UNSET}
    return tp(**members)


def _stores(presence: str, absent: Any, omit_none: bool = False) -> Variant:
    """``get_order`` returns orders whose shipment is declared in that way, and ``absent`` where there is none."""

    def tools(example: ModuleType, data: Data) -> Any:
        base: Any = rewritten(example, data)
        order_type: Any = _with_shipment(data.order, presence)

        class OrderTools(base):  # type: ignore[misc]  # loaded at run time
            def get_order(self, order_id: str) -> order_type:
                kept = UNSET if omit_none and issubclass(order_type, dict) else absent
                return _stored(self.orders.get(order_id), data, order_type, kept)

        return OrderTools

    return Variant(tools, omit_none)


def _priceless(example: ModuleType, data: Data) -> Any:
    """V5: the first item of an order has no price, which its type does not admit."""
    base: Any = rewritten(example, data)
    order_type: Any = data.order

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        def get_order(self, order_id: str) -> order_type:
            order: Any = super().get_order(order_id)
            items: list[Any] = order["items"] if isinstance(order, dict) else order.items
            match items[0]:
                case dict() as first:
                    first["unitPrice"] = None
                case msgspec.Struct() as first:
                    items[0] = msgspec.structs.replace(first, unit_price=None)
                case first:
                    first.unitPrice = None
            return order

    return OrderTools


def _listing_with(output_schema: Any) -> Callable[[ModuleType, Data], Any]:
    """``get_customer_orders`` publishes what it returns."""

    def tools(example: ModuleType, data: Data) -> Any:
        base: Any = rewritten(example, data)
        order_type: Any = data.order

        class OrderTools(base):  # type: ignore[misc]  # loaded at run time
            @tool(output_schema=output_schema)
            def get_customer_orders(self, customer_id: str) -> list[order_type]:
                return super().get_customer_orders(customer_id)  # type: ignore[no-any-return]  # of the form

        return OrderTools

    return tools


class _Noting:
    """Tools that take note of what they got, and another one that tells."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.notes: list[Any] = []

    @tool
    def noted(self) -> list[Any]:
        return self.notes


def _by_enumeration(example: ModuleType, data: Data) -> Any:
    """V8: the status is typed as what it is."""
    base: Any = rewritten(example, data)
    order_type: Any = data.order
    status_type: Any = sys.modules["orders"].Status

    class OrderTools(_Noting, base):  # type: ignore[misc]  # loaded at run time
        def get_orders_by_status(self, status: status_type) -> list[order_type]:
            self.notes.append(status)
            return super().get_orders_by_status(status)  # type: ignore[no-any-return]  # of the form

    return OrderTools


def _searching(example: ModuleType, data: Data) -> Any:
    """V9: a tool reads its arguments itself."""
    base: Any = rewritten(example, data)

    class OrderTools(_Noting, base):  # type: ignore[misc]  # loaded at run time
        @tool
        def search_orders(self, request: CallToolRequest) -> str:
            self.notes.append(request.arguments)
            return request.name

    return OrderTools


class PaymentDown(Exception):
    """Declared by the tool that raises it."""


ELICITATIONS: Final = {
    "elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://example.com", "message": "m"}]
}


def _failing(example: ModuleType, data: Data) -> Any:
    """V10: everything that a tool can raise."""
    base: Any = rewritten(example, data)

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        @tool
        def os_error(self) -> str:
            raise OSError("db host 10.0.0.5 password=hunter2")

        @tool
        def assertion(self) -> str:
            raise AssertionError("hunter2")

        @tool
        def exits(self) -> str:
            raise SystemExit("hunter2")

        @tool(raises=(PaymentDown,))
        async def payment(self) -> str:
            raise PaymentDown("hunter2")

        @tool
        def url_now(self) -> str:
            raise McpError(-32042, "URL needed", ELICITATIONS)

        @tool
        async def url_later(self) -> str:
            await anyio.lowlevel.checkpoint()
            raise McpError(-32042, "URL needed", ELICITATIONS)

        @tool
        async def url_yielded(self) -> AsyncIterator[str]:
            yield "discarded"
            raise McpError(-32042, "URL needed", ELICITATIONS)

        @tool
        def chained(self) -> str:
            try:
                raise OSError("hunter2")
            except OSError as error:
                raise ValueError("outer") from error

    return OrderTools


class _Colour(StrEnum):
    RED = "red"


def _without_schema(example: ModuleType, data: Data) -> Any:
    """V11: the flag on what no schema describes."""
    base: Any = rewritten(example, data)

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        @tool(output_schema=True)
        def integer(self) -> int:
            return 1

        @tool(output_schema=True)
        async def text(self) -> str:
            return "x"

        @tool(output_schema=True)
        def nothing(self) -> None:
            return None

        @tool(output_schema=True)
        async def colour(self) -> _Colour:
            return _Colour.RED

        @tool(output_schema=True)
        def whole(self) -> CallToolResult:
            return CallToolResult.text("x")

    return OrderTools


def _plain(example: ModuleType, data: Data) -> Any:
    """V12: nothing is said about any tool."""
    base: Any = rewritten(example, data)
    return type("OrderTools", (base,), {name: tool(vars(base)[name]) for name in vars(base) if name[0] != "_"})


_asking: contextvars.ContextVar[str] = contextvars.ContextVar("asking", default="nobody")


async def _name_who_asks(message: Any, call_next: Any) -> Any:
    if message.method == "tools/call":
        _asking.set(f"{message.caller.info.name} {message.params.name}")
    return await call_next(message)


def _slow_and_fast(example: ModuleType, data: Data) -> Any:
    """V13: a ``def`` that takes long, and an ``async def`` that answers only while the other one runs."""
    base: Any = rewritten(example, data)
    begun, released = threading.Event(), threading.Event()

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        @tool
        def slow(self) -> str:
            begun.set()
            return _asking.get() if released.wait(20) else "nobody let it go"

        @tool
        async def fast(self) -> str:
            assert await anyio.to_thread.run_sync(begun.wait, 20)
            return _asking.get()

        @tool
        def release(self) -> None:
            released.set()

    return OrderTools


class _Silent:
    """The context of a caller to whom nothing can be said."""

    can_elicit = False

    async def progress(self, *_: Any, **__: Any) -> None: ...


def _optional_contexts(example: ModuleType, data: Data) -> Any:
    """Both tools that speak with the client say that they can do without."""
    base: Any = rewritten(example, data)
    rechecked_type: Any = data.rechecked
    cancelled_type: Any = data.cancelled

    class OrderTools(base):  # type: ignore[misc]  # loaded at run time
        async def recheck_shipments(self, ctx: Context | None, customer_id: str | None = None) -> rechecked_type:
            return await super().recheck_shipments(ctx or _Silent(), customer_id)

        async def cancel_order(self, ctx: Context | None, order_id: str, reason: str | None = None) -> cancelled_type:
            return await super().cancel_order(ctx or _Silent(), order_id, reason)

    return OrderTools


VARIANTS: Final = {
    "as it is": Variant(lambda example, data: None),
    "V1": _stores("required", None),
    "V2": _stores("optional", None),
    "V3": _stores("optional", UNSET),
    "V4, null": _stores("nullable", None),
    "V4, left out": _stores("nullable", None, omit_none=True),
    "V5": Variant(_priceless),
    "V6": Variant(_listing_with(True)),
    "V7": Variant(_listing_with("wrap")),
    "V8": Variant(_by_enumeration),
    "V9": Variant(_searching),
    "V10": Variant(_failing),
    "V11": Variant(_without_schema),
    "V12": Variant(_plain),
    "V13": Variant(_slow_and_fast, middleware=(_name_who_asks,)),
    "optional contexts": Variant(_optional_contexts),
}


# -- where it runs -----------------------------------------------------------------------------------------------------


def shop_of(example: ModuleType, variant: str = "as it is", form: str = "struct", **options: Any) -> Shop:
    """A shop of that variant and form, with the options of a registry."""
    tools, omit_none, middleware = VARIANTS[variant]
    if omit_none is not None:
        options["omit_none"] = omit_none
    return Shop(example, form, tools(example, data_of(example, form)), middleware, **options)


class Service:
    """The order service where it is to be tried, as one client after another sees it.

    Args:
        over: How clients reach it: one of the `WAYS`, or ``stdio``, as a process of its own.
        form: Of its data.
    """

    def __init__(self, example: ModuleType, over: str, form: str = "struct") -> None:
        self.over = over
        self.form = form
        self.log = Log()
        self.shop: Shop | None = None
        """What is served, unless that is a process."""
        self._example = example

    @asynccontextmanager
    async def target(self, **setup: Any) -> AsyncGenerator[Any]:
        """Serve a new shop and yield what clients connect to. The setup is that of `shop_of`, all of it JSON."""
        self.log, self.shop = Log(), None
        setup = {"form": self.form, **setup}
        with anyio.fail_after(60):
            if self.over == "stdio":
                yield stdio(*command_of(**setup), cwd=ROOT, stderr=self.log.lines.append)
                return
            with _logging_to(self.log.lines.append):
                self.shop = shop_of(self._example, **setup)
                async with reached(self.shop.server, self.over) as target:
                    yield target

    @asynccontextmanager
    async def client(self, setup: Mapping[str, Any] | None = None, **options: Any) -> AsyncGenerator[Client]:
        """A client of a new shop, with these options."""
        async with self.target(**(setup or {})) as target, Client(target, **{"timeout": 20, **options}) as client:
            yield client


def command_of(**setup: Any) -> list[str]:
    """What starts the process, in the root of the repository. The setup is that of `shop_of`, all of it JSON."""
    return [sys.executable, "-m", "tests.support.order_variants", json.dumps(setup)]


if __name__ == "__main__":
    with example_module() as module, _logging_to(lambda line: print(line, file=sys.stderr, flush=True)):
        shop_of(module, **json.loads(sys.argv[1])).server.run()
