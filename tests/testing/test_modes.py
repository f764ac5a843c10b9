"""The helper for tests of handlers in every strict mode."""

from types import SimpleNamespace
from typing import Any

import pytest

from mcpcore import Context, DefinitionError, SyncContext, prompt, resource, tool
from mcpcore.providers import (
    AsyncProvider,
    AsyncStatelessProvider,
    Provider,
    SyncProvider,
    SyncStatelessProvider,
)
from mcpcore.testing.modes import MODES, in_every_mode


class Tools:
    @tool
    def plain(self) -> str:
        return "plain"

    @tool
    async def awaited(self) -> str:
        return "awaited"

    @tool
    def asks(self, ctx: SyncContext) -> str:
        return "asks"

    @tool
    async def asks_later(self, ctx: Context) -> str:
        return "asks later"


class Others:
    @prompt
    async def greet(self) -> str:
        return "Hello."

    @resource("a://b")
    def note(self) -> str:
        return "note"


TAKEN: dict[Provider, set[str]] = {
    SyncProvider(): {"plain", "asks", "note"},
    AsyncProvider(): {"awaited", "asks_later", "greet"},
    SyncStatelessProvider(): {"plain", "note"},
    AsyncStatelessProvider(): {"awaited", "greet"},
}


def test_there_are_four_modes() -> None:
    assert set(MODES) == set(TAKEN) and len(MODES) == 4


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_each_mode_has_a_registry_of_its_own(mode: Provider, caplog: pytest.LogCaptureFixture) -> None:
    registry = in_every_mode(Tools(), Others())[mode]
    assert (registry.provider.type, registry.provider.state) == (mode.type, mode.state)
    assert {handler.name for handler in registry.handlers()} == TAKEN[mode]
    names = {"plain", "awaited", "asks", "asks_later", "greet", "note"}
    assert {skipped.name for skipped in registry.skipped} == names - TAKEN[mode]
    assert caplog.records == []


def test_arguments_are_renamed_as_they_will_be() -> None:
    class Shop:
        @tool
        def find(self, order_id: str) -> str:
            return order_id

    registry = in_every_mode(Shop(), rename="camel")[SyncProvider()]
    assert list(registry.list("tool", "2026-07-28")[0].input_schema["properties"]) == ["orderId"]


def test_what_cannot_be_a_handler_is_refused() -> None:
    def mistaken(ctx: Context) -> str:
        return ""

    target: Any = SimpleNamespace(mistaken=tool(mistaken))
    with pytest.raises(DefinitionError, match="SyncContext"):
        in_every_mode(target)
