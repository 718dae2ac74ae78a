"""What Confluent's registry answers: versions of schemas, compatible or not, and deleting them."""

from __future__ import annotations

import json

from tests.integration.registry_steps import VERSION_MESSAGE, A, B, C, Step, record, sent

VERSIONS: dict[str, list[Step]] = {
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
}  # fmt: skip
