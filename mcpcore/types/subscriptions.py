"""``subscriptions/listen`` (modern): a long-lived request that carries notifications."""

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from mcpcore.types._base import Object

__all__ = ["AcknowledgedParams", "ListenParams", "SubscriptionFilter"]


class SubscriptionFilter(Object):
    """What a subscription wants, or was granted."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class ListenParams(Object):
    notifications: SubscriptionFilter
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class AcknowledgedParams(Object):
    """``notifications/subscriptions/acknowledged``: always the first message of its subscription."""

    notifications: SubscriptionFilter
    meta: dict[str, Any] | None = field(name="_meta", default=None)
