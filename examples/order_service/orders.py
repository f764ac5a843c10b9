"""The orders of a shop: two hundred of them, made by a rule, and what may be done with them.

Nothing here knows that the orders are served over a protocol.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

NOW = datetime(2026, 2, 1, tzinfo=UTC)
"""When the example plays: its clock stands still, so that its answers never change."""


class Status(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    SHIPPED = "SHIPPED"
    DELIVERED = "DELIVERED"
    CANCELLED = "CANCELLED"


class Customer(Struct, rename="camel", frozen=True):
    customer_id: str
    name: str
    email: str


class Item(Struct, rename="camel", frozen=True):
    sku: str
    quantity: int
    unit_price: float


class Shipment(Struct, rename="camel", frozen=True):
    """``delivered_at`` is absent, not null, while the parcel is on its way."""

    tracking_number: str
    carrier: str
    shipped_at: datetime
    delivered_at: datetime | UnsetType = UNSET


class Order(Struct, rename="camel", frozen=True):
    """``shipment`` is absent, not null, while the order has not shipped."""

    order_id: str
    status: Status
    customer: Customer
    items: list[Item]
    total_amount: float
    created_at: datetime
    last_updated: datetime
    shipment: Shipment | UnsetType = UNSET


class Orders:
    """All orders, newest first, and the history of every status. Whoever changes something says when it is."""

    def __init__(self) -> None:
        self._orders = {order.order_id: order for order in sample_orders()}
        self.history: dict[str, list[tuple[Status, str]]] = {each.order_id: [] for each in self}
        """Per order: each former status, and why it changed."""

    def __iter__(self) -> Iterator[Order]:
        return reversed(self._orders.values())

    def get(self, order_id: str) -> Order:
        """Return one order. Raises ValueError, in words for whoever asked, when there is none."""
        try:
            return self._orders[order_id]
        except KeyError:
            raise ValueError(f"No order with ID '{order_id}'. Check the ID and try again.") from None

    def of_customer(self, customer_id: str) -> list[Order]:
        """Return the orders of one customer."""
        return [order for order in self if order.customer.customer_id == customer_id]

    def in_status(self, status: str) -> list[Order]:
        """Return the orders in one status. Raises ValueError when there is no such status."""
        wanted = status_named(status)
        return [order for order in self if order.status is wanted]

    def move(self, order_id: str, new_status: str, now: datetime, why: str = "") -> Order:
        """Give an order a status and return it. Moving it where it is already changes nothing."""
        status, order = status_named(new_status), self.get(order_id)
        return order if order.status is status else self._change(order, now, why, status=status)

    def deliver(self, order_id: str, now: datetime) -> Order:
        """Note that the parcel has arrived."""
        order = self.get(order_id)
        shipment = order.shipment
        if shipment is UNSET:
            raise ValueError(f"Order {order_id} has not shipped.")
        arrived = replace(shipment, delivered_at=now)
        return self._change(order, now, "delivered", status=Status.DELIVERED, shipment=arrived)

    def cancellable(self, order_id: str) -> Order:
        """Return an order that can be cancelled. Raises ValueError when it is too late."""
        order = self.get(order_id)
        if order.status not in (Status.PENDING, Status.PROCESSING):
            raise ValueError(
                f"Order {order_id} is {order.status}. Only PENDING and PROCESSING orders can be cancelled."
            )
        return order

    def _change(self, order: Order, now: datetime, why: str, **changes: object) -> Order:
        self.history[order.order_id].append((order.status, why))
        changed = self._orders[order.order_id] = replace(order, last_updated=now, **changes)
        return changed


class StubCarrier:
    """Knows every parcel: it has arrived where the tracking number can be divided by three."""

    async def has_delivered(self, tracking_number: str) -> bool:
        return int(tracking_number.removeprefix("TRK-")) % 3 == 0


def status_named(name: str) -> Status:
    """Return a status by its name. Raises ValueError, listing all of them, when there is none."""
    try:
        return Status(name)
    except ValueError:
        raise ValueError(f"Invalid status '{name}'. Must be one of: [{', '.join(Status)}]") from None


# 57 and 200 have no common factor, so every status occurs exactly as often as it stands here.
_STATUSES = (
    *[Status.SHIPPED] * 57,
    *[Status.PENDING] * 25,
    *[Status.DELIVERED] * 80,
    *[Status.PROCESSING] * 20,
    *[Status.CANCELLED] * 18,
)


def sample_orders() -> list[Order]:
    """Return the two hundred orders, oldest first."""
    return [_order(k) for k in range(200)]


def _order(k: int) -> Order:
    number, customer = 10001 + k, 1 + 7 * k % 50
    status = _STATUSES[57 * k % 200]
    created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=k)
    items = [
        Item(f"SKU-{1 + (3 * k + j) % 25:03d}", 1 + (k + j) % 4, 5.0 + 2.5 * ((k + j) % 20)) for j in range(1 + k % 3)
    ]
    shipment: Shipment | UnsetType = UNSET
    if status in (Status.SHIPPED, Status.DELIVERED):
        shipment = Shipment(
            f"TRK-{number}",
            "GLOBEX" if k % 2 else "ACME",
            created + timedelta(hours=24),
            created + timedelta(hours=96) if status is Status.DELIVERED else UNSET,
        )
    return Order(
        order_id=f"ORD-{number}",
        status=status,
        customer=Customer(f"CUST-{customer}", f"Customer {customer}", f"customer{customer}@example.com"),
        items=items,
        total_amount=sum(item.quantity * item.unit_price for item in items),
        created_at=created,
        last_updated=created + timedelta(minutes=30),
        shipment=shipment,
    )
