"""What a tool raises: who is told what, and that everything is logged."""

import asyncio
import enum
import logging
from typing import Any

import pytest
from msgspec import UNSET

from mcpcore.exceptions import (
    CapabilityError,
    ConnectionLost,
    InsufficientScope,
    McpError,
    PeerError,
    RequestTimeout,
    ResourceNotFound,
    ToolError,
    enum_error,
)
from mcpcore.providers.failures import failed, outstanding, request_failure, tool_failure
from mcpcore.providers.schema import InvalidArguments, InvalidValue
from mcpcore.types import CallToolResult, TextContent

LEGACY, MODERN = "2025-11-25", "2026-07-28"


class PaymentDown(Exception):
    """Declared hard by the tools that raise it."""


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def answer(exc: BaseException, **options: Any) -> CallToolResult:
    return tool_failure(exc, **{"tool": "pay", "function": "f", "version": LEGACY, **options})


def text(exc: BaseException, **options: Any) -> str:
    result = answer(exc, **options)
    (block,) = result.content
    assert isinstance(block, TextContent) and result.is_error is True and result.structured_content is UNSET
    return block.text


@pytest.mark.parametrize(
    ("exc", "words", "level"),
    [
        (ToolError("Try again"), "Try again", logging.INFO),
        (ResourceNotFound("x://a"), "Resource not found: x://a", logging.INFO),
        (CapabilityError("client 'x 1.0' does not support elicitation"), "client 'x 1.0' does not support elicitation", logging.INFO),
        (InvalidValue(["/a: null found, string expected"]), "/a: null found, string expected", logging.INFO),
        (ValueError("Invalid status 'X'"), "Invalid status 'X'", logging.WARNING),
        (KeyError("k"), "'k'", logging.WARNING),
        (RuntimeError("boom"), "boom", logging.ERROR),
        (RuntimeError(), "RuntimeError", logging.ERROR),
        (Wordless(), "Wordless", logging.ERROR),
        (RuntimeError("half \ud800"), "half ?", logging.ERROR),
        (ExceptionGroup("g", [ValueError("inner")]), "inner", logging.WARNING),
        (ExceptionGroup("g", [ExceptionGroup("h", [ToolError("deep")])]), "deep", logging.INFO),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "two (2 sub-exceptions)", logging.ERROR),
    ],
)  # fmt: skip
def test_the_model_reads_the_words_of_an_exception(
    exc: BaseException, words: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert text(exc) == f"Error invoking method: f\n{words}"
    (record,) = caplog.records
    assert record.levelno == level and "pay" in record.getMessage()
    assert (record.exc_info is not None) is (level > logging.INFO)


def test_only_the_outer_message_is_conveyed() -> None:
    try:
        try:
            raise OSError("db host 10.0.0.5 password=hunter2")
        except OSError as inner:
            raise ValueError("The store is not reachable") from inner
    except ValueError as exc:
        assert text(exc) == "Error invoking method: f\nThe store is not reachable"


@pytest.mark.parametrize(
    "exc",
    [
        OSError("db host 10.0.0.5 password=hunter2"),
        FileNotFoundError(2, "gone", "/etc/hunter2"),
        TimeoutError("hunter2"),
        AssertionError("hunter2"),
        MemoryError("hunter2"),
        RecursionError("hunter2"),
        SystemError("hunter2"),
        SystemExit("hunter2"),
        RequestTimeout("hunter2"),
        ConnectionLost("hunter2"),
        PeerError(-32000, "hunter2"),
        ExceptionGroup("g", [OSError("hunter2")]),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_what_the_machine_says_is_masked_and_logged(exc: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    told = text(exc, format_error=lambda tool, exc: str(exc))
    heading, detail = told.split("\n")
    assert heading == "Error invoking method: f"
    assert detail.startswith("Internal error (ref ") and "hunter2" not in told and type(exc).__name__ not in told
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and record.exc_info is not None
    assert detail.removeprefix("Internal error (ref ").removesuffix(")") in record.getMessage()


def test_references_differ() -> None:
    assert text(OSError()) != text(OSError())


def test_masking_spares_what_authors_raise_on_purpose() -> None:
    assert text(RuntimeError("secret"), mask_unexpected=True).startswith(
        "Error invoking method: f\nInternal error (ref "
    )
    for exc in (ToolError("told"), ValueError("told"), IndexError("told"), CapabilityError("told")):
        assert text(exc, mask_unexpected=True) == "Error invoking method: f\ntold"


def test_a_tool_error_may_do_without_the_first_line() -> None:
    assert text(ToolError("just this", prefix=False)) == "just this"


def test_invalid_arguments_have_a_text_of_their_own() -> None:
    exc = InvalidArguments("pay", ["/a: required property not found"])
    assert text(exc, format_error=lambda tool, exc: "x") == (
        "Tool (pay) input validation failed: Validation failed: JSON schema validation errors: "
        "[/a: required property not found]"
    )


def test_a_hook_writes_the_text_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    assert text(ValueError("v"), format_error=lambda tool, exc: f"{tool}: {exc}") == "pay: v"

    def broken(tool: str, exc: BaseException) -> str:
        raise RuntimeError("hook")

    assert text(ValueError("v"), format_error=broken) == "Error invoking method: f\nv"
    assert "format_error failed" in caplog.text


@pytest.mark.parametrize("exc", [PaymentDown("hunter2"), ExceptionGroup("g", [ValueError("x"), PaymentDown("y")])])
def test_a_declared_exception_is_an_internal_error_of_the_protocol(
    exc: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(McpError) as caught:
        answer(exc, raises=(PaymentDown,))
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
    assert caplog.records[0].levelno == logging.ERROR and caplog.records[0].exc_info is not None


@pytest.mark.parametrize("group", [False, True])
def test_a_protocol_error_is_answered_as_it_is(group: bool) -> None:
    exc = McpError(-32042, "URL elicitation required", {"elicitations": []})
    with pytest.raises(McpError) as caught:
        answer(ExceptionGroup("g", [ValueError("x"), exc]) if group else exc)
    assert caught.value is exc


def test_a_missing_capability_is_the_protocols_business_from_2026() -> None:
    exc = CapabilityError("client 'x 1.0' does not support elicitation", required={"elicitation": {}})
    with pytest.raises(McpError) as caught:
        answer(exc, version=MODERN)
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.parametrize(
    "exc",
    [
        InsufficientScope("write"),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        BaseExceptionGroup("g", [ValueError("x"), KeyboardInterrupt()]),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_what_is_no_failure_goes_on(exc: BaseException) -> None:
    with pytest.raises(type(exc)) as caught:
        answer(exc)
    assert caught.value is exc
    with pytest.raises(type(exc)):
        request_failure(exc, handler="prompt 'p'", version=LEGACY)


@pytest.mark.parametrize(
    "exc", [ValueError("hunter2"), OSError("hunter2"), SystemExit("hunter2"), ToolError("hunter2")]
)
def test_other_kinds_answer_failures_with_an_error_that_says_nothing(
    exc: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(McpError) as caught:
        request_failure(exc, handler="prompt 'p'", version=LEGACY)
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
    assert caplog.records[0].exc_info is not None


def test_other_kinds_let_answers_pass_and_name_missing_capabilities() -> None:
    for exc in (ResourceNotFound("x://a"), McpError(-32000, "m")):
        with pytest.raises(type(exc)):
            request_failure(ExceptionGroup("g", [exc, ValueError("x")]), handler="h", version=LEGACY)
    missing = CapabilityError("client 'x 1.0' does not support roots", required={"roots": {}})
    with pytest.raises(McpError, match="does not support roots") as legacy:
        request_failure(missing, handler="h", version=LEGACY)
    with pytest.raises(McpError) as modern:
        request_failure(missing, handler="h", version=MODERN)
    assert (legacy.value.code, modern.value.code) == (-32603, -32021)


def test_a_group_stands_for_the_member_that_tells_most() -> None:
    one, two = ValueError("a"), McpError(-1, "b")
    assert outstanding(one) is one
    assert outstanding(ExceptionGroup("g", [one])) is one
    assert outstanding(ExceptionGroup("g", [one, ExceptionGroup("h", [two, one])])) is two
    ordinary = ExceptionGroup("g", [one, one])
    assert outstanding(ordinary) is ordinary
    assert outstanding(ordinary, (ValueError,)) is one


@pytest.mark.parametrize(
    ("members", "answered"),
    [
        ([ToolError("for the model"), OSError("db-7 is down")], "Error invoking method: f\nfor the model"),
        (
            [OSError("db-7 is down"), ExceptionGroup("h", [ToolError("one"), ToolError("two")])],
            "Error invoking method: f\none",
        ),
        ([ToolError("for the model"), OSError("db-7 is down"), McpError(-1, "hard")], McpError),
        ([ToolError("for the model"), OSError("db-7 is down"), PaymentDown()], McpError),
    ],
)
def test_of_a_group_one_is_answered_and_all_are_logged(
    members: Any, answered: Any, caplog: pytest.LogCaptureFixture
) -> None:
    group = ExceptionGroup("g", members)
    if isinstance(answered, str):
        assert text(group, raises=(PaymentDown,)) == answered
    else:
        with pytest.raises(answered):
            answer(group, raises=(PaymentDown,))
    assert "tool 'pay' failed in several ways" in caplog.text and "db-7 is down" in caplog.text
    caplog.clear()
    with pytest.raises(ResourceNotFound):
        request_failure(
            ExceptionGroup("g", [OSError("db-7 is down"), ResourceNotFound("x://a")]), handler="h", version=LEGACY
        )
    assert "db-7 is down" in caplog.text


def test_a_failed_result_is_an_error_of_one_text() -> None:
    assert failed("a") == CallToolResult([TextContent("a")], is_error=True)


class OrderStatus(enum.Enum):
    PENDING = "PENDING"
    SHIPPED = 2


def test_a_value_of_no_enumeration_is_told_with_all_that_would_have_been() -> None:
    assert text(enum_error("IN_TRANSIT", OrderStatus)) == (
        "Error invoking method: f\nInvalid order status 'IN_TRANSIT'. Must be one of: [PENDING, 2]"
    )
