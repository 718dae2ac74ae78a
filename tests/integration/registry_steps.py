"""What is asked of a registry, and what it answers.

An answer is given as
    a number         the error code
    (number, text)   the error code and the whole message
    {...}            members that the answer has, maybe with others
    anything else    the whole answer
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Step(NamedTuple):
    call: str  # method and path
    body: Any
    status: int
    answer: Any


def record(*fields: str, name: str = "R", **more: Any) -> str:
    """Fields are written `name:type` or `name:type=default`."""
    members = []
    for field in fields:
        head, _, default = field.partition("=")
        field_name, _, type_ = head.partition(":")
        member: dict[str, Any] = {"name": field_name, "type": type_}
        if default:
            member["default"] = json.loads(default)
        members.append(member)
    schema = {"type": "record", "name": name, "fields": members, **more}
    return json.dumps(schema, separators=(",", ":"))


def sent(text: str, **more: Any) -> dict[str, Any]:
    return {"schema": text, **more}


A = record("a:int")
B = record("a:int", "b:string")  # reads nothing that A wrote
C = record("a:int", "c:int=0")
INNER = (
    '{"type":"record","name":"Inner","namespace":"shop","fields":[{"name":"id","type":"string"}]}'
)
OUTER = (
    '{"type":"record","name":"Outer","namespace":"shop","fields":[{"name":"inner","type":"Inner"}]}'
)
TO_INNER = [{"name": "shop.Inner", "subject": "inner", "version": 1}]
VERSION_MESSAGE = (
    "The specified version '{}' is not a valid version id. Allowed values are between "
    '[1, 2^31-1] and the string "latest"'
)
