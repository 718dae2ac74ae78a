"""Which JSON values can be the default of a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from duolog.avro.json_tree import Json
from duolog.avro.schema import (
    Array,
    Enum,
    Fixed,
    Kind,
    Map,
    Named,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)
from duolog.errors import InvalidSchema

# JSON has no numbers for these; Java's Avro writes and reads them so.
_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
_FLOAT_LIMIT: Final = 2.0**128 - 2.0**103  # from here on, rounding makes infinity of it
_INT_BITS: Final = {Kind.INT: 31, Kind.LONG: 63}


class DefaultCheck:
    """Compares defaults with their types, in a bounded number of steps for a whole schema.

    A default of a union may be of any of its types (Avro 1.12; before, of the first alone). A
    record's default may leave out fields that have defaults of their own. Where JSON has no
    number, floating point takes the strings "NaN", "Infinity" and "-Infinity".
    """

    def __init__(self, named: Callable[[str], Named | None], steps: int) -> None:
        self._named = named
        self._steps = steps  # unions of records can try the same values again and again

    def fits(self, schema: Schema, value: Json) -> bool:
        self._steps -= 1
        if self._steps < 0:
            raise InvalidSchema("schema: its defaults fit too many types to check them all.")
        match schema:
            case Primitive(kind=kind):
                return _fits_primitive(kind, value)
            case Fixed(size=size):
                return isinstance(value, str) and len(value) == size and _is_bytes(value)
            case Enum(symbols=symbols):
                return isinstance(value, str) and value in symbols
            case Array(items=inner):
                return isinstance(value, list) and all(self.fits(inner, item) for item in value)
            case Map(values=inner):
                return isinstance(value, dict) and all(
                    self.fits(inner, item) for item in value.values()
                )
            case Union(branches=branches):
                return any(self.fits(branch, value) for branch in branches)
            case Reference(name=name):
                found = self._named(name)
                return found is not None and self.fits(found, value)
            case Record(fields=fields):
                return isinstance(value, dict) and all(
                    self.fits(member.type, value[member.name])
                    if member.name in value
                    else member.default is not None
                    for member in fields
                )


def _fits_primitive(kind: Kind, value: Json) -> bool:
    match kind:
        case Kind.NULL:
            return value is None
        case Kind.BOOLEAN:
            return isinstance(value, bool)
        case Kind.INT | Kind.LONG:
            if isinstance(value, bool) or not isinstance(value, int):
                return False
            limit = 1 << _INT_BITS[kind]
            return -limit <= value < limit
        case Kind.FLOAT | Kind.DOUBLE:
            if isinstance(value, str):
                return value in _NO_NUMBERS
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            return kind is Kind.DOUBLE or abs(value) < _FLOAT_LIMIT
        case Kind.BYTES:
            return isinstance(value, str) and _is_bytes(value)
        case Kind.STRING:
            return isinstance(value, str)


def _is_bytes(text: str) -> bool:
    """Whether its code points are 0 to 255, each of which is a byte."""
    return text.isascii() or max(text) <= "\xff"
