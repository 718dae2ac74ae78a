"""Confluent's documented answers, as a table: what is asked one after the other, and the answers.

An answer is given as
    a number         the error code
    (number, text)   the error code and the whole message
    {...}            members that the answer has, maybe with others
    anything else    the whole answer
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from duolog.avro.registry.app import registry_app
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.rest import registry_router
from duolog.avro.registry.service import RegistryService
from duolog.errors import DiskFull

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


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

SCENARIOS: dict[str, list[Step]] = {
    "an empty registry": [
        Step("GET /", None, 200, {}),
        Step("POST /", {"any": "thing"}, 200, {}),
        Step("GET /subjects", None, 200, []),
        Step("GET /schemas", None, 200, []),
        Step("GET /schemas/types", None, 200, ["AVRO"]),
        Step("GET /contexts", None, 200, ["."]),
        Step("GET /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        Step("GET /mode", None, 200, {"mode": "READWRITE"}),
        Step("GET /subjects/s/versions", None, 404, (40401, "Subject 's' not found.")),
        Step("GET /subjects/s/versions/1", None, 404, (40401, "Subject 's' not found.")),
        Step("GET /subjects/s/versions/latest", None, 404, 40401),
        Step("GET /schemas/ids/1", None, 404, (40403, "Schema 1 not found")),
        Step("GET /schemas/ids/0", None, 404, (40403, "Schema 0 not found")),
        Step("GET /schemas/ids/-1", None, 404, (40403, "Schema -1 not found")),
        Step("GET /schemas/ids/1/schema", None, 404, 40403),
        Step("GET /schemas/ids/1/subjects", None, 404, (40403, "Schema not found")),
        Step("GET /schemas/ids/1/versions", None, 404, (40403, "Schema not found")),
        Step("POST /subjects/s", sent(A), 404, (40401, "Subject 's' not found.")),
        Step("DELETE /subjects/s", None, 404, (40401, "Subject 's' not found.")),
        Step("DELETE /subjects/s?permanent=true", None, 404, 40401),
        Step("DELETE /subjects/s/versions/1", None, 404, 40401),
        Step("GET /v1/metadata/id", None, 200, {
            "scope": {
                "path": [],
                "clusters": {
                    "kafka-cluster": "duolog", "schema-registry-cluster": "schema-registry"
                },
            }
        }),
    ],
    "registering": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1, "version": 1, "schema": A}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1, "version": 1}),
        Step("POST /subjects/s/versions", sent(A.replace(":", " : ")), 200, {"id": 1}),
        Step("POST /subjects/t/versions", sent(A), 200, {"id": 1, "version": 1}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 2, "version": 2}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1, "version": 1}),
        Step("GET /subjects", None, 200, ["s", "t"]),
        Step("GET /subjects/s/versions", None, 200, [1, 2]),
        Step("GET /subjects/s/versions?offset=1&limit=5", None, 200, [2]),
        Step("GET /subjects/s/versions?limit=1", None, 200, [1]),
        Step("GET /subjects/s/versions/1", None, 200, {
            "subject": "s", "version": 1, "id": 1, "schemaType": "AVRO", "schema": A
        }),
        Step("GET /subjects/s/versions/latest", None, 200, {"version": 2, "id": 2, "schema": C}),
        Step("GET /subjects/s/versions/LATEST", None, 200, {"version": 2}),
        Step("GET /subjects/s/versions/-1", None, 200, {"version": 2}),
        Step("GET /subjects/s/versions/1/schema", None, 200, json.loads(A)),
        Step("GET /subjects/s/versions/3", None, 404, (40402, "Version 3 not found.")),
        Step("GET /subjects/s/versions/0", None, 422, (42202, VERSION_MESSAGE.format("0"))),
        Step("GET /subjects/s/versions/-2", None, 422, (42202, VERSION_MESSAGE.format("-2"))),
        Step("GET /subjects/s/versions/first", None, 422, (42202, VERSION_MESSAGE.format("first"))),
        Step("GET /subjects/s/versions/2147483648", None, 422, 42202),
        Step("GET /schemas/ids/1", None, 200, {"schema": A, "schemaType": "AVRO"}),
        Step("GET /schemas/ids/1?fetchMaxId=true", None, 200, {"maxId": 2}),
        Step("GET /schemas/ids/1?subject=t", None, 200, {"subject": "t", "version": 1}),
        Step("GET /schemas/ids/1?subject=unknown", None, 200, {"schema": A}),
        Step("GET /schemas/ids/2/schema", None, 200, json.loads(C)),
        Step("GET /schemas/ids/1/subjects", None, 200, ["s", "t"]),
        Step("GET /schemas/ids/1/versions", None, 200, [
            {"subject": "s", "version": 1}, {"subject": "t", "version": 1}
        ]),
        Step("POST /subjects/s", sent(A), 200, {"subject": "s", "version": 1, "id": 1}),
        Step("POST /subjects/s", sent(B), 404, (40403, "Schema not found")),
        Step("POST /subjects/s", sent("nonsense"), 422, 42201),
        Step("POST /subjects/s", {}, 404, 40403),
        Step("POST /subjects/s/versions", {"metadata": {"properties": {"k": "v"}}}, 200, {
            "id": 3, "version": 3, "schema": C, "metadata": {"properties": {"k": "v"}}}),
    ],
    "identity is that of the schema, not of its text": [
        Step("POST /subjects/s/versions", sent('{"type":"string"}'), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent('"string"'), 200, {"id": 1}),
        Step("POST /subjects/r/versions", sent(
            '{"name":"R","fields":[{"type":"int","name":"a"}],"type":"record"}'), 200, {"id": 2}),
        Step("POST /subjects/r/versions", sent(A), 200, {"id": 2, "version": 1}),
        Step("POST /subjects/r/versions", sent(record("a:int", doc="other")), 200, {"id": 3}),
        Step("POST /subjects/r/versions", sent(record("a:int", x="other")), 200, {"id": 4}),
        Step("POST /subjects/r/versions", sent(record("a:int", y=1, x="other")), 200, {"id": 5}),
        Step("POST /subjects/r/versions", sent(record("a:int", x="other", y=1)), 200, {"id": 5}),
        Step("POST /subjects/n/versions", sent(record("a:int", y=1, x="other")), 200, {"id": 5}),
        Step("POST /subjects/n/versions?normalize=true", sent(record("a:int", y=2, x="1")), 200, {
            "id": 6, "schema": record("a:int", x="1", y=2)
        }),
    ],
    "incompatible": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(B), 409, (409, (
            'Schema being registered is incompatible with an earlier schema for subject "s", '
            "details: [{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' "
            "at path '/fields/1' in the new schema has no default value and is missing in the old "
            "schema', additionalInfo:'b', field:'b'}, {oldSchemaVersion: 1}, "
            "{newSchemaVersion: 2}, "
            f"{{oldSchema: '{A}'}}, {{validateFields: 'false', compatibility: 'BACKWARD'}}]"
        ))),
        Step("GET /subjects/s/versions", None, 200, [1]),
        Step("GET /schemas/ids/2", None, 404, 40403),
        Step("POST /compatibility/subjects/s/versions/latest", sent(B), 200, {
            "is_compatible": False
        }),
        Step("POST /compatibility/subjects/s/versions", sent(C), 200, {"is_compatible": True}),
        Step("POST /compatibility/subjects/s/versions?verbose=true", sent(C), 200, {
            "is_compatible": True, "messages": []
        }),
        Step("POST /compatibility/subjects/s/versions/1?verbose=True", sent(record("a:string")),
             200, {"is_compatible": False, "messages": [
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field "
            "in the new schema does not match with the old schema', additionalInfo:'reader type: "
            "STRING not compatible with writer type: INT', field:'a'}",
            "{oldSchemaVersion: 1}",
            f"{{oldSchema: '{A}'}}",
            "{validateFields: 'false', compatibility: 'BACKWARD'}",
        ]}),
        Step("POST /compatibility/subjects/s/versions/2", sent(B), 404, (
            40402, "Version 2 not found.")),
        Step("POST /compatibility/subjects/s/versions/0", sent(B), 422, 42202),
        Step("POST /compatibility/subjects/s/versions/1", sent("{"), 422, 42201),
        Step("POST /compatibility/subjects/s/versions/1?verbose=true", sent("{"), 200, {
            "is_compatible": False
        }),
        Step("POST /compatibility/subjects/unknown/versions/latest", sent(B), 200, {
            "is_compatible": True
        }),
        Step("POST /compatibility/subjects/unknown/versions/1", sent(B), 404, 40402),
        Step("POST /compatibility/subjects/s/versions", {}, 422, (42201, "Empty schema")),
        Step("POST /subjects/s/versions?force=true", sent(B), 200, {"id": 2, "version": 2}),
    ],
    "levels": [
        Step("POST /subjects/s/versions", sent(record("f1:string", "f2:string")), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(record("f1:string")), 200, {"id": 2}),
        Step("PUT /config/s", {"compatibility": "FORWARD_TRANSITIVE"}, 200, {
            "compatibility": "FORWARD_TRANSITIVE"
        }),
        Step("POST /compatibility/subjects/s/versions/latest",
             sent(record("f1:string", "f3:string")), 200, {"is_compatible": True}),
        Step("POST /compatibility/subjects/s/versions",
             sent(record("f1:string", "f3:string")), 200, {"is_compatible": False}),
        Step("POST /subjects/s/versions", sent(record("f1:string", "f3:string")), 409, 409),
        Step("PUT /config/s", {"compatibility": "forward"}, 200, {"compatibility": "FORWARD"}),
        Step("POST /subjects/s/versions", sent(record("f1:string", "f3:string")), 200, {"id": 3}),
        Step("PUT /config/s", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        Step("POST /subjects/s/versions", sent('"int"'), 200, {"id": 4, "version": 4}),
    ],
    "schemas that are none": [
        Step("POST /subjects/s/versions", sent("{"), 422, 42201),
        Step("POST /subjects/s/versions", sent(""), 422, (42201, "Empty schema")),
        Step("POST /subjects/s/versions", sent("  "), 422, (42201, "Empty schema")),
        Step("POST /subjects/s/versions", {"schema": None}, 422, (42201, "Empty schema")),
        Step("POST /subjects/s/versions", {}, 422, (42201, "Empty schema")),
        Step("POST /subjects/s/versions", sent(record("a:str")), 422, 42201),
        Step("POST /subjects/s/versions", sent(record('a:string=null')), 422, 42201),
        Step("POST /subjects/s/versions", sent("{}", schemaType="JSON"), 422, (
            42201, "Invalid schema type JSON")),
        Step("POST /subjects/s/versions", sent("", schemaType="PROTOBUF"), 422, 42201),
        Step("POST /subjects/s/versions", sent(A, schemaType="AVRO"), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(A, unknown="passed over"), 200, {"id": 1}),
        Step("GET /schemas/ids/2", None, 404, 40403),
    ],
    "subjects that are none": [
        Step("POST /subjects/bad%0Asubject/versions", sent(A), 422, (
            42208, "The specified subject 'bad\nsubject' is not a valid.")),
        Step("POST /subjects/__EMPTY/versions", sent(A), 422, 42208),
        Step("POST /subjects/__GLOBAL/versions", sent(A), 422, 42208),
        Step("POST /subjects/:.__GLOBAL:s/versions", sent(A), 422, 42208),
        Step("PUT /config/bad%00subject", {"compatibility": "NONE"}, 422, 42208),
        Step("PUT /mode/bad%7Fsubject", {"mode": "READONLY"}, 422, 42208),
        Step("POST /subjects/*/versions", sent(A), 200, {"id": 1}),
    ],
    "odd names": [
        Step("POST /subjects/a%2Fb/versions", sent(A), 200, {"id": 1}),
        Step("GET /subjects/a%2Fb/versions/1", None, 200, {"subject": "a/b"}),
        Step("GET /subjects/a/b/versions/1", None, 404, (404, "HTTP 404 Not Found")),
        Step("POST /subjects/x%2Fversions/versions", sent(A), 200, {"id": 1}),
        Step("GET /subjects/x%2Fversions/versions/", None, 200, [1]),
        Step("GET /subjects/x/versions", None, 404, 40401),
        Step("POST /subjects/100%25%20of%20it/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/%C3%A4%3F%23/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/a+b/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/latest/versions", sent(A), 200, {"id": 1}),
        Step("GET /subjects", None, 200,
             ["100% of it", "a+b", "a/b", "latest", "x/versions", "ä?#"]),
        Step("DELETE /subjects/a%2Fb", None, 200, [1]),
    ],
    "deleting versions": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 2}),
        Step("DELETE /subjects/s/versions/2?permanent=true", None, 404, (
            40407, "Subject 's' Version 2 was not deleted first before being permanently deleted")),
        Step("DELETE /subjects/s/versions/2", None, 200, 2),
        Step("DELETE /subjects/s/versions/2", None, 404, (
            40406,
            "Subject 's' Version 2 was soft deleted.Set permanent=true to delete permanently")),
        Step("GET /subjects/s/versions", None, 200, [1]),
        Step("GET /subjects/s/versions?deleted=true", None, 200, [1, 2]),
        Step("GET /subjects/s/versions?deletedOnly=true", None, 200, [2]),
        Step("GET /subjects/s/versions?deletedAsNegative=true", None, 200, [1, -2]),
        Step("GET /subjects/s/versions/2", None, 404, (40402, "Version 2 not found.")),
        Step("GET /subjects/s/versions/2?deleted=true", None, 200, {"version": 2, "deleted": True}),
        Step("GET /subjects/s/versions/latest", None, 200, {"version": 1}),
        Step("POST /subjects/s", sent(C), 404, (40403, "Schema not found")),
        Step("POST /subjects/s?deleted=true", sent(C), 200, {"version": 2, "deleted": True}),
        Step("GET /schemas/ids/2", None, 200, {"schema": C}),
        Step("GET /schemas/ids/2/subjects", None, 200, []),
        Step("GET /schemas/ids/2/subjects?deleted=true", None, 200, ["s"]),
        Step("DELETE /subjects/s/versions/2?permanent=true", None, 200, 2),
        Step("DELETE /subjects/s/versions/2?permanent=true", None, 404, 40402),
        Step("GET /subjects/s/versions/2?deleted=true", None, 404, 40402),
        Step("GET /schemas/ids/2", None, 404, (40403, "Schema 2 not found")),
        Step("DELETE /subjects/s/versions/0", None, 422, 42202),
        Step("DELETE /subjects/s/versions/9", None, 404, (40402, "Version 9 not found.")),
        Step("DELETE /subjects/s/versions/latest", None, 200, 1),
        Step("DELETE /subjects/s/versions/latest", None, 404, (40402, "Version -1 not found.")),
        Step("GET /subjects/s/versions", None, 404, 40401),
        # What comes back has its id again, and the number after the last that is still known.
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1, "version": 2}),
        Step("GET /subjects/s/versions?deleted=true", None, 200, [2]),
        # What was gone for good does not: ids are not used twice.
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 3, "version": 3}),
    ],
    "deleting subjects": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 2}),
        Step("PUT /config/s", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        Step("PUT /mode/s", {"mode": "READWRITE"}, 200, {"mode": "READWRITE"}),
        Step("DELETE /subjects/s?permanent=true", None, 404, (
            40405, "Subject 's' was not deleted first before being permanently deleted")),
        Step("DELETE /subjects/s", None, 200, [1, 2]),
        Step("DELETE /subjects/s", None, 404, (
            40404, "Subject 's' was soft deleted.Set permanent=true to delete permanently")),
        Step("GET /subjects", None, 200, []),
        Step("GET /subjects?deleted=true", None, 200, ["s"]),
        Step("GET /subjects?deletedOnly=true", None, 200, ["s"]),
        Step("GET /config/s", None, 200, {"compatibilityLevel": "NONE"}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1, "version": 3}),
        Step("DELETE /subjects/s", None, 200, [3]),
        Step("DELETE /subjects/s?permanent=true", None, 200, [2, 3]),
        Step("DELETE /subjects/s?permanent=true", None, 404, 40401),
        Step("GET /subjects?deleted=true", None, 200, []),
        Step("GET /config/s", None, 404, 40408),
        Step("GET /mode/s", None, 404, 40409),
        Step("GET /schemas/ids/1", None, 404, 40403),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 3, "version": 1}),
    ],
    "references": [
        Step("POST /subjects/inner/versions", sent(INNER), 200, {"id": 1}),
        Step("POST /subjects/outer/versions", sent(OUTER), 422, 42201),
        Step("POST /subjects/outer/versions", sent(OUTER, references=TO_INNER), 200, {
            "id": 2, "references": TO_INNER
        }),
        Step("GET /schemas/ids/2", None, 200, {"schema": OUTER, "references": TO_INNER}),
        Step("GET /schemas/ids/2?format=resolved", None, 200, {"schema": (
            '{"type":"record","name":"Outer","namespace":"shop","fields":[{"name":"inner","type":'
            '{"type":"record","name":"Inner","fields":[{"name":"id","type":"string"}]}}]}')}),
        Step("GET /schemas/ids/2?format=unknown", None, 200, {"schema": OUTER}),
        Step("GET /subjects/inner/versions/1/referencedby", None, 200, [2]),
        Step("GET /subjects/inner/versions/latest/referencedby", None, 200, [2]),
        Step("GET /subjects/outer/versions/1/referencedby", None, 200, []),
        Step("GET /subjects/inner/versions/2/referencedby", None, 404, 40402),
        Step("POST /subjects/outer", sent(OUTER, references=TO_INNER), 200, {"id": 2}),
        Step("POST /subjects/outer", sent(
            '{"type":"record","name":"shop.Outer","fields":[{"name":"inner","type":{"type":"record"'
            ',"name":"shop.Inner","fields":[{"name":"id","type":"string"}]}}]}'), 200, {"id": 2}),
        Step("DELETE /subjects/inner/versions/1", None, 422, (42206, (
            "One or more references exist to the schema "
            "{magic=1,keytype=SCHEMA,subject=inner,version=1}."))),
        Step("DELETE /subjects/inner", None, 422, 42206),
        Step("DELETE /subjects/outer/versions/1", None, 200, 1),
        Step("GET /subjects/inner/versions/1/referencedby", None, 200, []),
        Step("GET /subjects/inner/versions/1/referencedby?deleted=true", None, 200, [2]),
        Step("DELETE /subjects/inner/versions/1", None, 200, 1),
        Step("DELETE /subjects/inner/versions/1?permanent=true", None, 422, 42206),
        Step("POST /subjects/outer/versions", sent(OUTER, references=TO_INNER), 422, 42201),
        Step("DELETE /subjects/outer/versions/1?permanent=true", None, 200, 1),
        Step("DELETE /subjects/inner/versions/1?permanent=true", None, 200, 1),
    ],
    "references that are none": [
        Step("POST /subjects/s/versions", sent(A, references=[
            {"name": "bad", "subject": "bad", "version": 100}]), 422, 42201),
        Step("POST /subjects/s/versions", sent(A, references=[{"name": "bad"}]), 422, 42201),
        Step("POST /subjects/s/versions", sent(A, references=[]), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(A, references=None), 200, {"id": 1}),
    ],
    "a reference to the latest is to the one that it was": [
        Step("POST /subjects/inner/versions", sent(INNER), 200, {"id": 1}),
        Step("POST /subjects/outer/versions", sent(OUTER, references=[
            {"name": "shop.Inner", "subject": "inner", "version": -1}]), 200, {
            "references": TO_INNER}),
    ],
    "incompatible by what is referred to": [
        Step("POST /subjects/inner/versions", sent(INNER), 200, {"id": 1}),
        Step("POST /subjects/outer/versions", sent(OUTER, references=TO_INNER), 200, {"id": 2}),
        Step("PUT /config/inner", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        Step("POST /subjects/inner/versions", sent(
            INNER.replace("string", "long")), 200, {"id": 3, "version": 2}),
        Step("POST /subjects/outer/versions", sent(OUTER, references=[
            {"name": "shop.Inner", "subject": "inner", "version": 2}]), 409, 409),
    ],
    "config": [
        Step("GET /config/s", None, 404, (
            40408, "Subject 's' does not have subject-level compatibility configured")),
        Step("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
        Step("PUT /config", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
        Step("GET /config", None, 200, {"compatibilityLevel": "FULL"}),
        Step("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "FULL"}),
        Step("PUT /config/s", {"compatibility": "FORWARD"}, 200, {"compatibility": "FORWARD"}),
        Step("GET /config/s", None, 200, {"compatibilityLevel": "FORWARD"}),
        Step("PUT /config/s", {"compatibility": "INVALID"}, 422, (42203, (
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"))),
        Step("PUT /config", {"compatibility": "INVALID"}, 422, 42203),
        Step("PUT /config/s", {"normalize": True, "alias": "t", "compatibilityGroup": "major"}, 200,
             {"compatibility": "FORWARD", "normalize": True, "alias": "t",
              "compatibilityGroup": "major"}),
        Step("PUT /config/s", {"alias": None, "compatibility": None}, 200,
             {"normalize": True, "compatibilityGroup": "major"}),
        Step("GET /config/s", None, 200, {"compatibilityLevel": "FULL", "normalize": True}),
        Step("DELETE /config/s", None, 200, {"compatibilityLevel": "FULL", "normalize": True}),
        Step("DELETE /config/s", None, 404, (40401, "Subject 's' not found.")),
        Step("DELETE /config", None, 200, {"compatibilityLevel": "FULL"}),
        Step("DELETE /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        Step("PUT /config/:.:", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        Step("GET /config", None, 200, {"compatibilityLevel": "NONE"}),
        Step("PUT /config", {"defaultRuleSet": {"domainRules": [{"name": "r"}]}}, 422, (
            42210, "Missing rule type")),
    ],
    "mode": [
        Step("GET /mode/s", None, 404, (
            40409, "Subject 's' does not have subject-level mode configured")),
        Step("GET /mode/s?defaultToGlobal=true", None, 200, {"mode": "READWRITE"}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("PUT /mode", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(C), 422, (
            42205, "Subject s in context  is in read-only mode")),
        Step("DELETE /subjects/s", None, 422, 42205),
        Step("DELETE /subjects/s/versions/1", None, 422, 42205),
        Step("PUT /config/s", {"compatibility": "NONE"}, 422, 42205),
        Step("PUT /mode/s", {"mode": "readwrite"}, 200, {"mode": "readwrite"}),
        Step("GET /mode/s", None, 200, {"mode": "READWRITE"}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 2}),
        Step("PUT /mode", {"mode": "READONLY_OVERRIDE"}, 200, {"mode": "READONLY_OVERRIDE"}),
        Step("POST /subjects/s/versions", sent(record("z:int=1")), 422, 42205),
        Step("DELETE /mode/s", None, 200, {"mode": "READWRITE"}),
        Step("DELETE /mode/s", None, 404, 40401),
        Step("PUT /mode", {"mode": None}, 200, {"mode": None}),
        Step("GET /mode", None, 200, {"mode": "READWRITE"}),
        Step("PUT /mode", {"mode": "ANYTHING"}, 422, (
            42204, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")),
        Step("PUT /mode/s", {"mode": "FORWARD"}, 422, (
            42204, "Forward mode only supported on global level")),
        Step("PUT /mode/:.__GLOBAL:", {"mode": "FORWARD"}, 422, 42204),
        Step("PUT /mode", {"mode": "IMPORT"}, 422, (
            42205, "Cannot import since found existing subjects")),
        Step("PUT /mode?force=true", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
    ],
    "import": [
        Step("POST /subjects/s/versions", sent(A, id=7, version=3), 422, (
            42205, "Subject s in context  is not in import mode")),
        Step("PUT /mode/s", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
        Step("POST /subjects/s/versions", sent(A), 422, (
            42205, "Subject s in context  is not in read-write mode")),
        Step("POST /subjects/s/versions", sent(A, id=7, version=3), 200, {"id": 7, "version": 3}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 7, "version": 3}),
        Step("POST /subjects/s/versions", sent(A, id=7, version=4), 200, {"id": 7, "version": 4}),
        Step("POST /subjects/s/versions", sent(B, id=7, version=5), 422, (
            42205, "Overwrite new schema with id 7 in context  is not permitted.")),
        Step("POST /subjects/s/versions", sent(B, id=8, version=3), 422, 42205),
        Step("POST /subjects/s/versions", sent(B, id=0, version=1), 200, {"id": 0, "version": 1}),
        Step("GET /schemas/ids/0", None, 200, {"schema": B}),
        Step("PUT /mode/s", {"mode": "READWRITE"}, 200, {"mode": "READWRITE"}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 8, "version": 5}),
        Step("POST /subjects/s/versions", sent(record("a:int", "d:int=0"), version=9), 422, (
            42201, "Version is not one more than previous version")),
    ],
    "deleted versions are gone when import begins": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("DELETE /subjects/s", None, 200, [1]),
        Step("PUT /mode", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
        Step("GET /subjects?deleted=true", None, 200, []),
        Step("POST /subjects/s/versions", sent(B, id=1, version=1), 200, {"id": 1}),
    ],
    "metadata and rules": [
        Step("POST /subjects/s/versions", sent(A, metadata={
            "properties": {"owner": "b", "a": 1}, "tags": {"**.a": ["PII"]}, "sensitive": ["owner"],
        }), 200, {"id": 1, "metadata": {
            "tags": {"**.a": ["PII"]}, "properties": {"a": "1", "owner": "b"},
            "sensitive": ["owner"],
        }}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/t/versions", sent(A), 200, {"id": 2}),
        Step("POST /subjects/s/versions", sent(A, ruleSet={"domainRules": [
            {"name": "r", "type": "CEL", "mode": "WRITE", "expr": "true"}]}), 200, {
            "id": 3, "version": 2, "ruleSet": {"domainRules": [
                {"name": "r", "kind": "TRANSFORM", "mode": "WRITE", "type": "CEL", "expr": "true",
                 "disabled": False}]}}),
        Step("GET /subjects/s/metadata?key=owner&value=b", None, 200, {"version": 2}),
        Step("GET /subjects/s/metadata?key=owner&value=c", None, 404, (40403, "Schema not found")),
        Step("GET /subjects/u/metadata?key=owner&value=c", None, 404, 40401),
        Step("POST /subjects/s/versions", sent(A, ruleSet={"domainRules": [
            {"name": "r", "type": "CEL", "mode": "UPGRADE"}]}), 422, (
            42210, "Domain rules can only be WRITE, READ, WRITEREAD")),
        Step("POST /subjects/s/versions", sent(A, ruleSet={"migrationRules": [
            {"name": "r", "type": "CEL", "mode": "UPGRADE"},
            {"name": "r", "type": "CEL", "mode": "UPGRADE"}]}), 422, (
            42210, "Found rule with duplicate name 'r'")),
        Step("PUT /config/u", {"overrideMetadata": {"properties": {"team": "x"}}}, 200, {
            "overrideMetadata": {"properties": {"team": "x"}}}),
        Step("POST /subjects/u/versions", sent(A), 200, {
            "metadata": {"properties": {"team": "x"}}}),
    ],
    "the version that a schema names itself": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(A, version=-1), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(A, version=2), 200, {
            "id": 2, "version": 2, "metadata": {"properties": {"confluent:version": "2"}}}),
        Step("POST /subjects/s/versions", sent(A, version=-1), 200, {"id": 2}),
        Step("POST /subjects/s", sent(A), 200, {"version": 1}),
        Step("POST /subjects/s", sent(A, metadata={"properties": {"confluent:version": "1"}}), 200,
             {"version": 1}),
        Step("POST /subjects/s", sent(A, metadata={"properties": {"confluent:version": "2"}}), 200,
             {"version": 2}),
        Step("DELETE /subjects/s/versions/1", None, 200, 1),
        Step("POST /subjects/s", sent(A), 200, {"version": 2}),
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 2}),
        Step("POST /subjects/s/versions", sent(A, version=3), 200, {"id": 3}),
        Step("POST /subjects/s/versions", sent(A, version=3), 422, 42201),
    ],
    "compatibility groups": [
        Step("PUT /config/s", {"compatibilityGroup": "major"}, 200, {
            "compatibilityGroup": "major"}),
        Step("POST /subjects/s/versions", sent(A, metadata={"properties": {"major": "1"}}), 200,
             {"id": 1}),
        Step("POST /subjects/s/versions", sent(B, metadata={"properties": {"major": "1"}}), 409,
             409),
        Step("POST /subjects/s/versions", sent(B, metadata={"properties": {"major": "2"}}), 200,
             {"id": 2}),
    ],
    "contexts": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("POST /subjects/s/versions", sent(C), 200, {"id": 2}),
        Step("POST /subjects/:.ctx:s/versions", sent(C), 200, {"id": 1, "version": 1}),
        Step("POST /contexts/.ctx/subjects/t/versions", sent(A), 200, {"id": 2}),
        Step("POST /subjects/:.:u/versions", sent(A), 200, {"id": 1}),
        Step("GET /contexts", None, 200, [".", ".ctx"]),
        Step("GET /contexts?contextPrefix=.c", None, 200, [".ctx"]),
        Step("GET /subjects", None, 200, [":.ctx:s", ":.ctx:t", "s", "u"]),
        Step("GET /subjects?subjectPrefix=", None, 200, ["s", "u"]),
        Step("GET /subjects?subjectPrefix=:.ctx:", None, 200, [":.ctx:s", ":.ctx:t"]),
        Step("GET /subjects?subjectPrefix=:.ctx:t", None, 200, [":.ctx:t"]),
        Step("GET /subjects?subjectPrefix=:*:s", None, 200, [":.ctx:s", "s"]),
        Step("GET /contexts/ctx/subjects", None, 200, [":.ctx:s", ":.ctx:t"]),
        Step("GET /contexts/:.ctx:/subjects/t/versions/1", None, 200, {
            "subject": ":.ctx:t", "id": 2, "schema": A}),
        Step("GET /schemas/ids/1", None, 200, {"schema": A}),
        Step("GET /schemas/ids/1?subject=:.ctx:", None, 200, {"schema": C}),
        Step("GET /contexts/.ctx/schemas/ids/1", None, 200, {"schema": C}),
        Step("GET /schemas/ids/2?subject=t", None, 200, {"subject": ":.ctx:t", "schema": A}),
        Step("POST /subjects/t", sent(A), 200, {"subject": ":.ctx:t"}),
        Step("GET /schemas", None, 200, [
            {"subject": "s", "version": 1}, {"subject": "s", "version": 2},
            {"subject": "u", "version": 1}]),
        Step("GET /schemas?latestOnly=true&subjectPrefix=s", None, 200, [
            {"subject": "s", "version": 2}]),
        Step("GET /contexts/.ctx/schemas", None, 200, [
            {"subject": ":.ctx:s"}, {"subject": ":.ctx:t"}]),
        Step("PUT /config/:.ctx:", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        Step("GET /contexts/.ctx/config", None, 200, {"compatibilityLevel": "NONE"}),
        Step("GET /config/:.ctx:s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        Step("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
        Step("PUT /mode/:.__GLOBAL:", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        Step("GET /mode/:.ctx:s?defaultToGlobal=true", None, 200, {"mode": "READONLY"}),
        Step("DELETE /mode/:.__GLOBAL:", None, 200, {"mode": "READONLY"}),
        Step("DELETE /contexts/.ctx", None, 422, (
            42211, "The specified context ':.ctx:' is not empty.")),
        Step("DELETE /subjects/:.ctx:s", None, 200, [1]),
        Step("DELETE /subjects/:.ctx:t", None, 200, [1]),
        Step("DELETE /subjects/:.ctx:s?permanent=true", None, 200, [1]),
        Step("DELETE /subjects/:.ctx:t?permanent=true", None, 200, [1]),
        Step("DELETE /contexts/.ctx", None, 204, None),
        Step("GET /contexts", None, 200, ["."]),
        Step("POST /subjects/:.ctx:s/versions", sent(A), 200, {"id": 3}),
        Step("GET /contexts/a%3Ab/subjects", None, 400, (
            400, "Context name 'a:b' cannot contain a colon")),
    ],
    "references stay in their context": [
        Step("POST /subjects/:.ctx:inner/versions", sent(INNER), 200, {"id": 1}),
        Step("POST /subjects/:.ctx:outer/versions", sent(OUTER, references=TO_INNER), 200, {
            "id": 2}),
        Step("GET /subjects/:.ctx:inner/versions/1/referencedby", None, 200, [2]),
        Step("GET /subjects/:.ctx:outer/versions/1?referenceFormat=qualified", None, 200, {
            "references": [{"name": "shop.Inner", "subject": ":.ctx:inner", "version": 1}]}),
        Step("DELETE /subjects/:.ctx:inner", None, 422, 42206),
    ],
    "aliases": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("PUT /config/old", {"alias": "s"}, 200, {"alias": "s"}),
        Step("GET /subjects/old/versions/1", None, 200, {"subject": "s"}),
        Step("GET /schemas/ids/1?subject=old", None, 200, {"subject": "s"}),
        Step("POST /subjects/old/versions", sent(C), 200, {"id": 2}),
        Step("GET /subjects", None, 200, ["s"]),
    ],
    "guids": [
        Step("POST /subjects/s/versions", sent('"string"'), 200, {
            "guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d"}),
        Step("POST /subjects/:.ctx:s/versions", sent('"string"'), 200, {
            "guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d"}),
        Step("GET /schemas/guids/095d71cf-1255-6b9d-5e33-0ad575b3df5d", None, 200, {
            "schema": '"string"'}),
        Step("GET /schemas/guids/095D71CF12556B9D5E330AD575B3DF5D", None, 200, {
            "schema": '"string"'}),
        Step("GET /schemas/guids/095d71cf-1255-6b9d-5e33-0ad575b3df5d/ids", None, 200, [
            {"context": ".", "id": 1}, {"context": ".ctx", "id": 1}]),
        Step("GET /schemas/guids/00000000-0000-0000-0000-000000000000", None, 404, (
            40403, "Schema 00000000-0000-0000-0000-000000000000 not found")),
        Step("GET /schemas/guids/none", None, 404, (40403, "Schema none not found")),
        Step("GET /schemas/guids/none/ids", None, 200, []),
    ],
    "numbers and switches as Java reads them": [
        Step("POST /subjects/s/versions", sent(A), 200, {"id": 1}),
        Step("GET /schemas/ids/abc", None, 404, (404, "HTTP 404 Not Found")),
        Step("GET /schemas/ids/99999999999", None, 404, 404),
        Step("GET /schemas/ids/1_0", None, 404, 404),
        Step("GET /schemas/ids/1.0", None, 404, 404),
        Step("GET /subjects?limit=x", None, 404, 404),
        Step("GET /subjects?limit=0", None, 200, ["s"]),
        Step("GET /subjects?limit=-1&offset=0", None, 200, ["s"]),
        Step("GET /subjects?offset=-5", None, 200, ["s"]),
        Step("GET /subjects?offset=5", None, 200, []),
        Step("GET /subjects?deleted=False&deleted_only=False", None, 200, ["s"]),
        Step("GET /subjects?deleted=yes&deletedOnly=1", None, 200, ["s"]),
        Step("GET /subjects?deletedOnly=TRUE", None, 200, []),
    ],
}  # fmt: skip


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(registry_app(RegistryService(MemoryDocuments()))) as client:
        yield client


@pytest.fixture(scope="module")
def shared() -> Iterator[TestClient]:
    """For tests that leave nothing behind that another could see."""
    with TestClient(registry_app(RegistryService(MemoryDocuments()))) as client:
        yield client


def ask(client: TestClient, call: str, body: Any = None, **more: Any) -> Any:
    method, _, path = call.partition(" ")
    if body is not None:
        more["json"] = body
    return client.request(method, path, **more)


@pytest.mark.parametrize("steps", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_confluents_answers(client: TestClient, steps: list[Step]) -> None:
    for step in steps:
        response = ask(client, step.call, step.body)
        assert response.status_code == step.status, (step, response.text)
        if step.answer is None:
            assert not response.content
            continue
        assert response.headers["content-type"] == MEDIA_TYPE
        check(step, response.json())


def check(step: Step, answer: Any) -> None:
    match step.answer:
        case int() as code if step.status >= 400:
            assert answer["error_code"] == code, (step, answer)
        case (code, message) if step.status >= 400:
            assert answer == {"error_code": code, "message": message}, step
        case dict() as members:
            assert answer == answer | members, (step, answer)
        case [dict(), *_] as items:
            assert len(answer) == len(items), (step, answer)
            for found, wanted in zip(answer, items, strict=True):
                assert found == found | wanted, (step, answer)
        case _:
            assert answer == step.answer, step


@pytest.mark.parametrize(
    "sent_as",
    [
        MEDIA_TYPE,
        "application/vnd.schemaregistry+json",
        "application/json; charset=utf-8",
        "application/octet-stream",
        None,
    ],
)
def test_bodies_are_json_whatever_they_are_called(shared: TestClient, sent_as: str | None) -> None:
    headers = {} if sent_as is None else {"content-type": sent_as}
    body = json.dumps(sent(A)).encode()
    response = ask(shared, "POST /subjects/s/versions", content=body, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("sent_as", ["text/plain", "application/xml", "multipart/form-data"])
def test_bodies_of_other_types_are_refused(shared: TestClient, sent_as: str) -> None:
    response = ask(
        shared, "POST /subjects/s/versions", content=b"{}", headers={"content-type": sent_as}
    )
    assert refused(response) == (415, 415, "HTTP 415 Unsupported Media Type")


def refused(response: Any) -> tuple[int, int, str]:
    assert response.headers["content-type"] == MEDIA_TYPE
    answer = response.json()
    assert answer.keys() == {"error_code", "message"}
    return response.status_code, answer["error_code"], answer["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"\xff\xfe{", 400),
        (b'{"schema": 5}', 422),  # Java reads it as "5", which is no schema
        (b'{"schema": {}}', 400),
        (b'{"schema": "\\"int\\"", "version": "one"}', 400),
        (b'{"schema": "\\"int\\"", "id": 2147483648}', 400),
        (b'{"schema": "\\"int\\"", "id": 1e400}', 400),
        (b'{"schema": "\\"int\\"", "references": [null]}', 400),
        (b'{"schema": "\\"int\\"", "metadata": {"tags": {"a": "b"}}}', 400),
        (b'{"schema": "\\"int\\"", "ruleSet": {"domainRules": [{"kind": "OTHER"}]}}', 400),
        (b'{"schema": "\\"int\\"", "metadata": {"properties": {"a": "\\ud800"}}}', 400),
        (b'{"schema": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
    ],
)
def test_bodies_that_are_not_right_are_refused(
    shared: TestClient, body: bytes, status: int
) -> None:
    response = ask(shared, "POST /subjects/refused/versions", content=body)
    assert refused(response)[0] == status
    assert ask(shared, "GET /subjects/refused/versions").status_code == 404


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    app = registry_app(RegistryService(MemoryDocuments()), max_body_bytes=1000)
    with TestClient(app) as client:
        too_large = b" " * 1001
        declared = ask(client, "POST /subjects/s/versions", content=too_large)
        in_pieces = ask(client, "POST /subjects/s/versions", content=iter([too_large] * 3))
        just_right = ask(
            client, "POST /subjects/s/versions", content=json.dumps(sent(A)).encode().ljust(1000)
        )
    expected = (413, 413, "The request body is larger than 1000 bytes.")
    assert refused(declared) == refused(in_pieces) == expected
    assert just_right.status_code == 200


@pytest.mark.parametrize(
    ("accept", "answered_as"),
    [
        (None, MEDIA_TYPE),
        ("*/*", MEDIA_TYPE),
        ("application/*", MEDIA_TYPE),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("application/json, application/vnd.schemaregistry.v1+json;q=0.4", "application/json"),
        (
            "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, "
            "application/json; q=0.5",
            MEDIA_TYPE,
        ),
    ],
)
def test_answers_come_as_the_client_likes_them(
    shared: TestClient, accept: str | None, answered_as: str
) -> None:
    shared.headers.pop("accept", None)
    headers = {} if accept is None else {"accept": accept}
    for call in ("GET /subjects", "GET /subjects/unknown/versions"):
        assert ask(shared, call, headers=headers).headers["content-type"] == answered_as


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*"])
def test_what_the_client_does_not_take_is_not_sent(shared: TestClient, accept: str) -> None:
    response = ask(shared, "GET /subjects", headers={"accept": accept})
    assert refused(response) == (406, 406, "HTTP 406 Not Acceptable")


def test_unknown_paths_and_methods_are_answered_in_json(shared: TestClient) -> None:
    assert refused(ask(shared, "GET /nowhere")) == (404, 404, "HTTP 404 Not Found")
    assert refused(ask(shared, "GET /docs"))[0] == 404
    assert refused(ask(shared, "GET /associations/resources/-/topic"))[0] == 404
    response = ask(shared, "PATCH /subjects/a%2Fb/versions")
    assert refused(response) == (405, 405, "HTTP 405 Method Not Allowed")
    assert response.headers["allow"] == "GET, HEAD, POST"
    assert refused(ask(shared, "BREW /mode"))[0] == 405


def test_a_slash_at_the_end_makes_no_difference(shared: TestClient) -> None:
    assert ask(shared, "POST /subjects/s/versions/", sent(A)).status_code == 200
    for call in ("GET /subjects/", "GET /subjects/s/versions/1/", "GET /config/", "GET /mode/"):
        assert ask(shared, call).status_code == 200


def test_head_is_get_without_a_body(shared: TestClient) -> None:
    assert ask(shared, "HEAD /subjects").status_code == 200
    assert ask(shared, "HEAD /subjects/unknown/versions").status_code == 404


def included() -> FastAPI:
    app = FastAPI()
    service = RegistryService(MemoryDocuments())
    app.include_router(registry_router(service), prefix="/registry")
    return app


def mounted() -> FastAPI:
    app = FastAPI()
    app.mount("/registry", registry_app(RegistryService(MemoryDocuments())))
    return app


@pytest.mark.parametrize("build", [included, mounted])
def test_a_host_has_the_registry_below_a_prefix(build: Any) -> None:
    with TestClient(build()) as client:
        for path in ("subjects/a%2Fb/versions", "contexts/.ctx/subjects/a%2Fb/versions"):
            assert ask(client, f"POST /registry/{path}", sent(A)).json()["id"] == 1
        assert ask(client, "GET /registry/subjects").json() == [":.ctx:a/b", "a/b"]
        assert ask(client, "GET /registry").json() == {}
        assert refused(ask(client, "GET /registry/nowhere"))[0] == 404
        assert refused(ask(client, "PUT /registry/subjects/a%2Fb"))[0] == 405
        assert (
            refused(ask(client, "POST /registry/subjects/s/versions", {"schema": "{"}))[1] == 42201
        )


class FullDocuments(MemoryDocuments):
    """Takes the first change, then no more."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error
        self._stored = False

    def store(self, changes: Any) -> None:
        if self._stored:
            raise self._error
        super().store(changes)
        self._stored = True


def test_what_could_not_be_stored_is_told_and_not_there() -> None:
    service = RegistryService(FullDocuments(DiskFull("The disk is full.")))
    with TestClient(registry_app(service)) as client:
        assert ask(client, "POST /subjects/s/versions", sent(A)).status_code == 200
        response = ask(client, "POST /subjects/s/versions", sent(C))
        assert refused(response) == (500, 50001, "The disk is full.")
        assert ask(client, "GET /subjects/s/versions").json() == [1]


def test_an_error_that_nobody_meant_is_answered_in_json_and_logged() -> None:
    service = RegistryService(FullDocuments(ZeroDivisionError()))
    app = registry_app(service)
    with TestClient(app, raise_server_exceptions=False) as client:
        ask(client, "POST /subjects/s/versions", sent(A))
        response = ask(client, "POST /subjects/s/versions", sent(C))
        assert refused(response) == (500, 500, "HTTP 500 Internal Server Error")
    with TestClient(app) as client, pytest.raises(ZeroDivisionError):
        ask(client, "POST /subjects/s/versions", sent(C))


def test_the_description_has_each_route_once_and_declares_its_errors() -> None:
    description = registry_app(RegistryService(MemoryDocuments())).openapi()
    operations = [
        (operation["operationId"], operation)
        for methods in description["paths"].values()
        for operation in methods.values()
    ]
    assert len({name for name, _ in operations}) == len(operations) == 38
    error = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    for name, operation in operations:
        refusals = {s: r for s, r in operation["responses"].items() if s not in ("200", "204")}
        assert refusals, name
        assert all(response["content"] == error for response in refusals.values()), name
    assert "HTTPValidationError" not in description["components"]["schemas"]
