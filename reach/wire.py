"""The log's values as JSON, by their types.

Dataclasses are objects with their fields, bytes are {"base64": …}, enums their numbers or words.
What has no fixed type here (names, numbers) passes as it is: the log itself judges it, so a wrong
value is refused alike wherever the log is.
"""

from __future__ import annotations

import binascii
import types
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from duolog.errors import InvalidRequest, UnsupportedFormat
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Expression, Filter, Latest, Start
from duolog.log.routing.filter.tree import from_json, to_json

_STARTS: Final = {kind.__name__: kind for kind in (Earliest, Latest, AtOffset, AtTimestamp)}


def to_wire(value: Any) -> Any:
    """What JSON can hold of a value."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Filter | Expression):
        return {"text": value.text, "tree": to_json(value.tree)}
    if is_dataclass(value) and not isinstance(value, type):
        fields_ = {
            field.name: to_wire(getattr(value, field.name))
            for field in fields(value)
            if _is_sent(field, value)
        }
        name = type(value).__name__
        return {"from": name, **fields_} if name in _STARTS else fields_
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(to_wire(item) for item in value)
    if isinstance(value, Collection):
        return [to_wire(item) for item in value]
    raise InvalidRequest(
        f"{value!r} cannot be sent to a log's host: it is a {type(value).__name__}."
    )


_PLAIN: Final = {str: "A text", int: "A whole number", float: "A number", bool: "True or false"}


def from_wire(kind: Any, value: Any) -> Any:
    """The value of this type that JSON holds."""
    if kind is Any:
        return value
    if kind is Start:
        return _start(value)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return from_wire(_member_for(value, inner), value)
    if origin in (tuple, frozenset, list):
        return _several(origin, inner, value)
    if origin is dict:
        _expect(dict, value)
        return {_key(inner[0], key): from_wire(inner[1], item) for key, item in value.items()}
    if kind is bytes:
        return _bytes(value)
    if kind is Filter or kind is Expression:
        _expect(dict, value)
        return kind(from_wire(str, _needed(value, "text")), from_json(_needed(value, "tree")))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind, value)
    if is_dataclass(kind):
        return _fields(kind, value)
    if isinstance(kind, type) and kind in _PLAIN and not _may_be(kind, value):
        raise InvalidRequest(f"{_PLAIN[kind]} is wanted, a {type(value).__name__} came.")
    return value


def _may_be(kind: type, value: Any) -> bool:
    """Whether what takes such a value may have this one, and say itself what is wrong with it. All
    are looked up, so lists have no place there; numbers are compared, so texts have none.
    """
    return isinstance(value, int | float if kind in {int, float} else str | int | float)


def _member_for(value: Any, members: tuple[Any, ...]) -> Any:
    """Which member of a union a value is of: an object is a dataclass, and nothing else is."""
    kinds = [member for member in members if member is not type(None)]
    if len(kinds) == 1:
        return kinds[0]
    (kind,) = (kind for kind in kinds if is_dataclass(kind) == isinstance(value, dict))
    return kind


def _several(origin: Any, inner: tuple[Any, ...], value: Any) -> Any:
    _expect(list, value)
    if origin is tuple and inner[-1:] != (...,):
        if len(value) != len(inner):
            raise InvalidRequest(f"{len(inner)} values are wanted, {len(value)} are there.")
        return tuple(from_wire(each, item) for each, item in zip(inner, value, strict=True))
    return origin(from_wire(inner[0], item) for item in value)


def _fields(kind: Any, value: Any) -> Any:
    _expect(dict, value)
    known = _hints(kind)
    strange = value.keys() - known.keys()
    if strange:
        raise UnsupportedFormat(
            f"A {kind.__name__} came with {', '.join(sorted(map(repr, strange)))}, which this "
            "Duolog does not know. Use the same Duolog on both sides."
        )
    try:
        return kind(**{name: from_wire(known[name], item) for name, item in value.items()})
    except TypeError as error:
        raise InvalidRequest(f"A {kind.__name__} came incomplete: {error}.") from None


def _key(kind: Any, key: str) -> Any:
    if kind is not int:
        return key
    try:
        return int(key)
    except ValueError:
        raise InvalidRequest(f"A whole number is wanted, {key!r} came.") from None


def _is_sent(field: Field[Any], value: Any) -> bool:
    """Some fields are left out while they say nothing: a Duolog that is older knows no such."""
    if not field.metadata.get("is_sent", True):
        return False
    is_said = field.metadata.get("is_sent_if_default", True)
    return bool(is_said or getattr(value, field.name) != field.default)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _start(value: Any) -> Any:
    _expect(dict, value)
    name = value.get("from")
    if not isinstance(name, str) or name not in _STARTS:
        raise InvalidRequest(f"A read starts from one of {', '.join(_STARTS)}; got {name!r}.")
    return _fields(_STARTS[name], {key: item for key, item in value.items() if key != "from"})


def _bytes(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {"base64"}:
        return value
    try:
        return b64decode(value["base64"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InvalidRequest("Bytes came that are not base64.") from None


def _member(kind: Any, value: Any) -> Any:
    try:
        member = kind(value)
    except ValueError:
        member = None
    if member is None or type(value) is not type(member.value):  # to Python, True and 1.0 are 1
        known = ", ".join(str(each.value) for each in kind)
        raise InvalidRequest(f"{value!a} is none of {kind.__name__}: {known}.")
    return member


def _needed(value: dict[str, Any], name: str) -> Any:
    if name not in value:
        raise InvalidRequest(f"'{name}' is missing.")
    return value[name]


def _expect(kind: type, value: Any) -> None:
    if not isinstance(value, kind):
        raise InvalidRequest(f"A {kind.__name__} is wanted, a {type(value).__name__} came.")
