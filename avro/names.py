"""Column names as Avro names, and back.

An Avro name is [A-Za-z_][A-Za-z0-9_]*. Every other character becomes `_xHHHH_`, its UTF-16 code
units in upper-case hex as in ISO 9075-14. What a column name has of that form itself gets its
first underscore written so, which makes the way back exact:

    order id   order_x0020_id           2nd       _x0032_nd
    größe      gr_x00F6__x00DF_e        _x0020_   _x005F_x0020_
"""

from __future__ import annotations

import re
from typing import Final

from duolog.errors import InvalidRows, InvalidSchema

PRIMITIVE_NAMES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
MAX_FULL_NAME_CHARACTERS: Final = 4096
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# An underscore that would be read as the start of an escape, also with the underscore that the
# next character's escape begins with.
_TO_ESCAPE: Final = re.compile(r"^[0-9]|[^A-Za-z0-9_]|_(?=x[0-9A-F]{4}[^A-Za-z0-9])")
_ESCAPED: Final = re.compile(r"((?:_x[0-9A-F]{4}_)+)")


def is_avro_name(text: str) -> bool:
    """Whether this can stand as a name, without a namespace."""
    return _NAME.fullmatch(text) is not None


def avro_name(column: str) -> str:
    """The Avro name of a column. InvalidRows when it has none."""
    if not column:
        raise InvalidRows("A column has an empty name, which Avro cannot carry. Rename it.")
    try:
        return _TO_ESCAPE.sub(lambda found: _escape(found.group()), column)
    except UnicodeEncodeError:
        raise InvalidRows(f"The column name {column!r} is not valid Unicode. Rename it.") from None


def type_name(column: str) -> str:
    """The name of a type that a column has for itself: primitive types' names are not free."""
    name = avro_name(column)
    return f"{_escape(name[0])}{name[1:]}" if name in PRIMITIVE_NAMES else name


def full_name(dotted: str) -> str:
    """The name of a type from any words with dots between them, such as a table's name."""
    parts = dotted.split(".")
    return ".".join([*map(avro_name, parts[:-1]), type_name(parts[-1])])


def column_name(avro: str) -> str:
    """The column whose Avro name this is; a name that `avro_name` never gives stays as it is."""
    if not is_avro_name(avro):
        raise InvalidSchema(
            f"{avro!r} is no Avro name: use letters, digits and _, not a digit first."
        )
    if "_x" not in avro:
        return avro
    try:
        column = _ESCAPED.sub(lambda found: _unescape(found.group()), avro)
        return column if avro_name(column) == avro else avro
    except (UnicodeDecodeError, InvalidRows):
        return avro


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"_x{units[begin : begin + 4]}_" for begin in range(0, len(units), 4))


def _unescape(escapes: str) -> str:
    return bytes.fromhex(escapes.replace("_x", "").replace("_", "")).decode("utf-16-be")
