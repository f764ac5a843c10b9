"""What a subscription may want, what a server grants, and which notification it gets."""

import itertools

import pytest

from mcpcore.protocol.subscriptions import CHANGES, grant, wants
from mcpcore.types import NotificationParams, ResourceUpdatedParams, ServerCapabilities, SubscriptionFilter
from mcpcore.types.lifecycle import ListChangedCapability, ResourcesCapability
from mcpcore.types.methods import METHODS, Direction

LISTS = ("tools_list_changed", "prompts_list_changed", "resources_list_changed")


def offered(tools: bool, prompts: bool, resources: bool, subscribe: bool) -> ServerCapabilities:
    return ServerCapabilities(
        tools=ListChangedCapability(tools),
        prompts=ListChangedCapability(prompts),
        resources=ResourcesCapability(subscribe, resources),
    )


@pytest.mark.parametrize("can", list(itertools.product([True, False], repeat=4)))
@pytest.mark.parametrize("asked", list(itertools.product([True, False, None], repeat=3)))
def test_what_is_granted_is_what_is_wanted_and_offered(
    can: tuple[bool, bool, bool, bool], asked: tuple[bool | None, bool | None, bool | None]
) -> None:
    for uris in (["file:///a", ""], [], None):
        granted = grant(SubscriptionFilter(*asked, uris), offered(*can))
        for member, wanted, offer in zip(LISTS, asked, can[:3], strict=True):
            assert getattr(granted, member) == (True if wanted and offer else None)
        assert granted.resource_subscriptions == (uris if uris and can[3] else None)


def test_nothing_is_granted_by_a_server_that_offers_nothing() -> None:
    assert grant(SubscriptionFilter(True, True, True, ["file:///a"]), ServerCapabilities()) == SubscriptionFilter()


@pytest.mark.parametrize("method", CHANGES)
def test_a_notification_goes_to_whom_it_was_granted(method: str) -> None:
    member, _ = CHANGES[method]
    if member == "resource_subscriptions":
        granted = SubscriptionFilter(resource_subscriptions=["file:///a", "x"])
        assert wants(granted, method, ResourceUpdatedParams("x"))
        assert not wants(granted, method, ResourceUpdatedParams("file:///A"))
        assert not wants(SubscriptionFilter(True, True, True), method, ResourceUpdatedParams("x"))
        return
    for other in LISTS:
        granted = SubscriptionFilter(other == LISTS[0], other == LISTS[1], other == LISTS[2])
        assert wants(granted, method, NotificationParams()) is (other == member)


def test_change_notifications_are_methods_to_a_client() -> None:
    rows = {row.name for row in METHODS if row.direction is Direction.TO_CLIENT and row.result is None}
    assert set(CHANGES) <= rows


def test_what_is_no_change_is_wanted_by_nobody() -> None:
    everything = SubscriptionFilter(True, True, True, ["file:///a"])
    assert not wants(everything, "notifications/message", NotificationParams())
