"""The orders of a shop: six tools, a resource, a prompt and the completion of order IDs.

Run it: ``python server.py`` speaks MCP on stdin and stdout.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Protocol

from msgspec import Meta, Struct
from orders import NOW, Order, Orders, StubCarrier

from mcpcore import (
    Arg,
    Context,
    Param,
    ResourceNotFound,
    Server,
    ToolError,
    ToolHints,
    complete,
    prompt,
    resource,
    tool,
)

READS = ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)

OrderId = Annotated[str, Param("The order ID, for example ORD-10001")]


class Carrier(Protocol):
    """Whoever brings the parcels."""

    async def has_delivered(self, tracking_number: str) -> bool: ...


class Rechecked(Struct):
    checked: int
    delivered: list[str]


class Cancelled(Struct):
    cancelled: bool
    note: str
    order: Order


class Confirm(Struct):
    confirm: Annotated[bool, Meta(description="Cancel this order for good")]


class OrderTools:
    """What a model may do with the orders."""

    def __init__(self, orders: Orders, carrier: Carrier, clock: Callable[[], datetime]) -> None:
        self.orders = orders
        self.carrier = carrier
        self.clock = clock

    @tool(output_schema=True, hints=READS)
    def get_order(self, order_id: OrderId) -> Order:
        """One order with customer, items and shipment. Order IDs look like ORD-10001. An order without a shipment has not shipped."""
        return self.orders.get(order_id)

    @tool(hints=READS)
    def get_customer_orders(
        self, customer_id: Annotated[str, Param("The customer ID, for example CUST-42")]
    ) -> list[Order]:
        """All orders of one customer, newest first. Customer IDs look like CUST-42. An empty list means the customer has no orders."""
        return self.orders.of_customer(customer_id)

    @tool(hints=READS)
    def get_orders_by_status(
        self, status: Annotated[str, Param("One of PENDING, PROCESSING, SHIPPED, DELIVERED, CANCELLED")]
    ) -> list[Order]:
        """All orders in one status, newest first. Statuses are PENDING, PROCESSING, SHIPPED, DELIVERED and CANCELLED. An empty list means no order is in that status."""
        return self.orders.in_status(status)

    @tool(hints=ToolHints(destructive=False, idempotent=True, open_world=False))
    def update_order_status(self, order_id: OrderId, new_status: Annotated[str, Param("The new status")]) -> Order:
        """Moves an order to a new status and returns the order. Statuses are PENDING, PROCESSING, SHIPPED, DELIVERED and CANCELLED."""
        return self.orders.move(order_id, new_status, self.clock())

    @tool(output_schema=True, hints=ToolHints(destructive=False, idempotent=True, open_world=True))
    async def recheck_shipments(
        self,
        ctx: Context,
        customer_id: Annotated[str | None, Param("Only this customer's orders, for example CUST-42")] = None,
    ) -> Rechecked:
        """Asks the carriers about every order in SHIPPED and marks the delivered ones. Returns how many were checked and the IDs now delivered, newest first; an empty list means nothing changed."""
        on_their_way = [
            order for order in self.orders.in_status("SHIPPED") if customer_id in (None, order.customer.customer_id)
        ]
        delivered: list[str] = []
        for number, order in enumerate(on_their_way, 1):
            if order.shipment and await self.carrier.has_delivered(order.shipment.tracking_number):
                self.orders.deliver(order.order_id, self.clock())
                delivered.append(order.order_id)
            await ctx.progress(number, total=len(on_their_way))
        return Rechecked(len(on_their_way), delivered)

    @tool(output_schema=True, hints=ToolHints(destructive=True, idempotent=False, open_world=False))
    async def cancel_order(
        self,
        ctx: Context,
        order_id: OrderId,
        reason: Annotated[str | None, Param("Why, in the customer's words")] = None,
    ) -> Cancelled:
        """Cancels a PENDING or PROCESSING order for good, after the user has confirmed. Returns whether it was cancelled, a note and the order."""
        order = self.orders.cancellable(order_id)
        if not ctx.can_elicit:
            raise ToolError(
                "Cancelling needs the user's confirmation and this client cannot ask for it. "
                "Ask the user to cancel in the support desk."
            )
        answer = await ctx.elicit(f"Cancel order {order_id}? This cannot be undone.", Confirm)
        if answer.value is None or not answer.value.confirm:
            return Cancelled(False, "Not cancelled: the user declined.", order)
        self.orders.cancellable(order_id)  # it may have shipped while the user was thinking
        cancelled = self.orders.move(order_id, "CANCELLED", self.clock(), why=reason or "")
        return Cancelled(True, f"Order {order_id} is cancelled.", cancelled)


class OrderDocuments:
    """What a user may attach or start from."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders

    @resource("order://{order_id}", mime_type="application/json")
    def order(self, order_id: str) -> Order:
        """One order with customer, items and shipment."""
        try:
            return self.orders.get(order_id)
        except ValueError:
            raise ResourceNotFound(f"order://{order_id}") from None

    @prompt
    def explain_order(self, order_id: Annotated[str, Arg("The order ID, for example ORD-10001")]) -> str:
        """Explain to a customer what happens with an order."""
        order = self.orders.get(order_id)
        return f"Explain to {order.customer.name} why order {order_id} is {order.status}, and what comes next."

    @complete(prompt="explain_order")
    @complete(uri="order://{order_id}")
    def order_ids(self, prefix: str) -> list[str]:
        """The order IDs that begin with what was typed, newest first."""
        return [order.order_id for order in self.orders if order.order_id.startswith(prefix)]


orders = Orders()
server = Server("order-service", version="1.0.0")
server.include(OrderTools(orders, StubCarrier(), lambda: NOW), rename="camel")
server.include(OrderDocuments(orders), rename="camel")

if __name__ == "__main__":
    server.run()
