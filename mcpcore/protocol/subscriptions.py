"""What a subscription may want, what a server grants, and which notification it gets.

2026-07-28, basic/patterns/subscriptions. The same questions are asked for the legacy era, where list changes are pushed
to every session and ``resources/subscribe`` names URIs.
"""

from typing import Final

from mcpcore.types._base import Object
from mcpcore.types.lifecycle import ServerCapabilities
from mcpcore.types.methods import declared
from mcpcore.types.resources import ResourceUpdatedParams
from mcpcore.types.subscriptions import SubscriptionFilter

__all__ = ["CHANGES", "grant", "wants"]

CHANGES: Final = {
    # notification: (member of SubscriptionFilter, capability that allows it)
    "notifications/tools/list_changed": ("tools_list_changed", "tools.list_changed"),
    "notifications/prompts/list_changed": ("prompts_list_changed", "prompts.list_changed"),
    "notifications/resources/list_changed": ("resources_list_changed", "resources.list_changed"),
    "notifications/resources/updated": ("resource_subscriptions", "resources.subscribe"),
}


def grant(wanted: SubscriptionFilter, capabilities: ServerCapabilities) -> SubscriptionFilter:
    """Return the part of ``wanted`` that a server with ``capabilities`` can honour."""
    honoured = {
        member: getattr(wanted, member)
        for member, capability in CHANGES.values()
        if getattr(wanted, member) and declared(capabilities, capability)
    }
    return SubscriptionFilter(**honoured)


def wants(granted: SubscriptionFilter, method: str, params: Object) -> bool:
    """Tell whether a subscription with this grant gets the notification."""
    member = CHANGES[method][0] if method in CHANGES else None
    if member is None:
        return False
    if isinstance(params, ResourceUpdatedParams):
        return params.uri in (granted.resource_subscriptions or ())
    return bool(getattr(granted, member))
