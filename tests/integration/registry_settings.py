"""What Confluent's registry answers: references, settings, modes, contexts, aliases, ids."""

from __future__ import annotations

from tests.integration.registry_steps import INNER, OUTER, TO_INNER, A, B, C, Step, record, sent

SETTINGS: dict[str, list[Step]] = {
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
