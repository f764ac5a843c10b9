"""The common shape of every wire type."""

from msgspec import Struct

__all__ = ["Object"]


class Object(Struct, omit_defaults=True, rename="camel"):
    """A JSON object of the protocol.

    Absent members hold None (or `msgspec.UNSET` where null is a value of its own) and are left out when
    written, never sent as null. Members that are null on arrival are taken as absent, unknown ones are ignored.
    """
