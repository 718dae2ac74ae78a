"""Schemas in few words, and a way to register them."""

from __future__ import annotations

import json
from typing import Any

from duolog.avro.registry.model import Candidate
from duolog.avro.registry.service import RegistryService


def record(*fields: str, name: str = "R") -> str:
    members = []
    for field in fields:
        field_name, type_, *default = field.split(":")
        members.append({"name": field_name, "type": type_} | ({"default": 0} if default else {}))
    schema = {"type": "record", "name": name, "fields": members}
    return json.dumps(schema, separators=(",", ":"))


A = record("a:int")
B = record("a:int", "b:string")
C = record("a:int", "c:int:0")


def put(service: RegistryService, subject: str, text: str, **more: Any) -> int:
    return service.registration.register(subject, Candidate(text, **more)).id
