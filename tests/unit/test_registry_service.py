"""The registry without HTTP: ids, threads, failures, references, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from duolog.avro.compatibility import Level
from duolog.avro.registry import parsing
from duolog.avro.registry.contexts import Qualified, begins_with, beside, is_valid_subject, within
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.model import Candidate, Content, Mode
from duolog.avro.registry.port import Registry, SchemaReference, SchemaText
from duolog.avro.registry.rules import Metadata
from duolog.avro.registry.service import Listed, RegistryService
from duolog.errors import (
    DuologError,
    IncompatibleSchema,
    InvalidSchema,
    NotWritten,
    OutcomeUnknown,
    RegistryRefused,
    UnknownSchema,
    UnknownSubject,
)
from tests.unit.registry_schemas import A, B, C, put, record


@pytest.fixture
def documents() -> MemoryDocuments:
    return MemoryDocuments()


@pytest.fixture
def service(documents: MemoryDocuments) -> RegistryService:
    return RegistryService(documents)


def refused(action: Callable[[], object]) -> int:
    with pytest.raises(RegistryRefused) as caught:
        action()
    return caught.value.error_code


# Identity


def test_guids_are_those_of_confluents_registry() -> None:
    """Known answers of its own regression test."""
    text = (
        '{"type":"record","name":"Person","namespace":"io.confluent.kafka.example","fields":['
        '{"name":"name","type":"string"},{"name":"age","type":"int"},{"name":"ssn","type":"string"}'
        ',{"name":"user","type":"io.confluent.kafka.example.User"},{"name":"address","type":'
        '"io.confluent.kafka.example.Address"}]}'
    )
    references = (
        SchemaReference("io.confluent.kafka.example.User", "User", 1),
        SchemaReference("io.confluent.kafka.example.Address", "Address", 2),
    )
    metadata = Metadata.of(
        {"environment": ["production", "staging"], "team": ["data-engineering"]},
        {
            "description": "Person schema for user management",
            "owner": "data-team",
            "version": "1.0.0",
        },
        ["credit-card", "ssn"],
    )
    contents = {
        "d629bb05-ad85-3d20-fbcb-895de3c459f7": Content(text),
        "5c08d70e-5347-41b2-6369-199425d044eb": Content(text, references=references),
        "2034166c-90a8-1166-0ff2-f5f62c80dbe0": Content(text, metadata=metadata),
        "3619d8e0-2ee8-de51-0d9e-2520d39174d5": Content(
            text, references=references, metadata=metadata
        ),
    }
    assert {str(content.guid): content for content in contents.values()} == contents


def test_one_schema_has_one_id_whatever_its_subject(service: RegistryService) -> None:
    assert [put(service, f"s{n}", A) for n in range(3)] == [1, 1, 1]
    assert put(service, "s0", C) == 2
    assert put(service, ":.other:s0", C) == 1


def test_ids_are_not_used_again(service: RegistryService, documents: MemoryDocuments) -> None:
    put(service, "s", A)
    service.deletion.delete_subject("s")
    service.deletion.delete_subject("s", permanent=True)
    assert [key for key in documents.load() if not key.startswith(b"context/")] == []
    assert put(RegistryService(documents), "s", A) == 2


def test_ids_run_out_with_a_word(service: RegistryService) -> None:
    service.settings.set_mode("", Mode.IMPORT)
    assert put(service, "s", A, id=2**31 - 1) == 2**31 - 1
    service.settings.set_mode("", Mode.READWRITE)
    assert refused(lambda: put(service, "t", C)) == 50001


def test_imports_may_give_a_schema_two_ids_and_a_version_another_one(
    service: RegistryService, documents: MemoryDocuments
) -> None:
    service.settings.set_mode("", Mode.IMPORT)
    for subject, schema_id in (("s", 7), ("t", 5), ("s", 9)):
        assert put(service, subject, A, id=schema_id, version=1) == schema_id
    assert refused(lambda: service.find_by_id(7)) == 40403
    assert b"schema/./7" not in documents.load()
    service.settings.set_mode("", Mode.READWRITE)
    for again in (service, RegistryService(documents)):
        assert put(again, "u", A) == 5
        assert put(again, "s", A) == 9


def test_order_of_what_has_no_order_makes_no_new_version(service: RegistryService) -> None:
    one = '{"type":"enum","name":"E","symbols":["A"],"aliases":["X","Y"],"p":1,"q":[2]}'
    other = '{"q":[2],"p":1,"aliases":["Y","X"],"symbols":["A"],"name":"E","type":"enum"}'
    assert put(service, "s", one) == put(service, "s", other) == 1
    assert put(service, "s", one.replace("[2]", "[3]")) == 2


# How much it takes


def _large(name: str, size: int) -> str:
    return f'{{"type":"record","name":"{name}","doc":"{"x" * size}","fields":[]}}'


def test_a_registry_takes_so_much_and_more_when_some_has_gone_for_good(
    service: RegistryService,
) -> None:
    service.limit(250_000)
    first = put(service, "a", _large("A", 100_000))
    put(service, "b", _large("B", 100_000))
    long = Metadata(properties=(("k", "v" * 100_000),))
    for text, metadata in ((_large("C", 100_000), None), (C, long)):
        with pytest.raises(RegistryRefused, match="max_schemas_bytes") as caught:
            put(service, "c", text, metadata=metadata)
        assert (caught.value.status, caught.value.error_code) == (422, 42205)
    assert put(service, "a", _large("A", 100_000)) == first  # what is known is answered
    assert put(service, "other", _large("A", 100_000)) == first
    assert put(service, "small", C)
    assert service.size_bytes < 250_000
    service.deletion.delete_subject("b", permanent=False)
    assert refused(lambda: put(service, "c", _large("C", 100_000))) == 42205
    service.deletion.delete_subject("b", permanent=True)
    assert put(service, "c", _large("C", 100_000))


def test_a_registry_that_holds_more_than_it_takes_goes_on_with_what_it_has(
    documents: MemoryDocuments,
) -> None:
    put(RegistryService(documents), "a", _large("A", 100_000))
    service = RegistryService(documents)
    service.limit(1000)
    assert service.latest("a").version == 1
    assert refused(lambda: put(service, "b", B)) == 42205
    service.deletion.delete_subject("a", permanent=False)


def test_few_large_schemas_are_kept_understood(
    service: RegistryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "_CACHED_BYTES", 250_000)
    kept = service.registration._reader
    for name in "ABCDE":
        put(service, name, _large(name, 100_000))
        put(service, name, _large(name, 100_001))
    assert 0 < kept._known_bytes < 250_000
    assert kept._known_bytes == sum(each.size_bytes for each in kept._known.values())
    put(service, "huge", _large("huge", 300_000))
    put(service, "huge", _large("huge", 300_001))
    assert kept._known_bytes < 250_000


def test_a_schema_refers_to_so_much(
    service: RegistryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MAX_REFERENCED_BYTES", 150_000)
    for name in "AB":
        put(service, name, _large(name, 100_000))
    one, two = (SchemaReference(name, name, 1) for name in "AB")
    both = '{"type":"record","name":"R","fields":[{"name":"a","type":"A"},{"name":"b","type":"B"}]}'
    only = '{"type":"record","name":"R","fields":[{"name":"a","type":"A"}]}'
    assert put(service, "r", only, references=(one,))
    assert refused(lambda: put(service, "s", both, references=(one, two))) == 42201


# Threads and failures


def test_threads_agree_on_ids_and_versions(service: RegistryService) -> None:
    service.settings.update_config("", {"level": Level.NONE})
    texts = [record(f"f{n}:int") for n in range(12)]

    def run(worker: int) -> list[tuple[str, int, int]]:
        found = []
        for n in range(len(texts)):
            text = texts[(n + worker) % len(texts)]
            version = service.registration.register(f"s{n % 3}", Candidate(text))
            found.append((text, version.id, version.version))
        return found

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for found in pool.map(run, range(8)) for answer in found]
    assert len({(text, schema_id) for text, schema_id, _ in answers}) == len(texts)
    assert {schema_id for _, schema_id, _ in answers} == set(range(1, len(texts) + 1))
    for subject in service.subjects(""):
        versions = service.versions(subject)
        assert [version.version for version in versions] == list(range(1, len(versions) + 1))
        assert len({version.id for version in versions}) == len(versions)


class UnsureDocuments(MemoryDocuments):
    """Fails once, with or without having stored."""

    def __init__(self, error: Exception, *, stores: bool) -> None:
        super().__init__()
        self._error: Exception | None = error
        self._stores = stores
        self.calls = 0

    def store(self, changes: Mapping[bytes, bytes | None]) -> None:
        self.calls += 1
        error, self._error = self._error, None
        if error is None or self._stores:
            super().store(changes)
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("error", "stores"),
    [(NotWritten("x"), False), (OutcomeUnknown("x"), False), (OutcomeUnknown("x"), True)],
)
def test_after_a_failed_write_is_known_what_is_stored(error: DuologError, stores: bool) -> None:
    documents = UnsureDocuments(error, stores=stores)
    service = RegistryService(documents)
    with pytest.raises(type(error)):
        put(service, "s", A)
    assert service.subjects("") == (["s"] if stores else [])
    assert put(service, "s", A) == 1
    assert documents.calls == (1 if stores else 2)


def test_each_change_is_one_write() -> None:
    documents = UnsureDocuments(NotWritten("x"), stores=True)
    service = RegistryService(documents)
    with pytest.raises(NotWritten):
        put(service, "s", A)
    put(service, "s", C)
    put(service, "s", C)
    service.deletion.delete_subject("s")
    service.deletion.delete_subject("s", permanent=True)
    assert documents.calls == 4


# The calls of serializers


def test_the_service_is_a_registry(service: RegistryService) -> None:
    registry: Registry = service
    assert registry.register("s", SchemaText(A)) == 1
    assert registry.register("s", SchemaText(C)) == 2
    found = registry.lookup("s", SchemaText(A))
    assert (found.subject, found.version, found.id, found.schema.text) == ("s", 1, 1, A)
    assert registry.latest("s").version == 2
    assert registry.version("s", 1) == found
    assert registry.schema_by_id(2) == SchemaText(C)
    guid = service.find_by_id(2).content.guid
    assert registry.schema_by_guid(guid) == SchemaText(C)


def test_the_calls_of_serializers_raise_errors_of_their_own(service: RegistryService) -> None:
    with pytest.raises(UnknownSubject, match="'s'"):
        service.latest("s")
    with pytest.raises(UnknownSubject, match="'s'"):
        service.lookup("s", SchemaText(A))
    service.register("s", SchemaText(A))
    with pytest.raises(UnknownSchema):
        service.lookup("s", SchemaText(C))
    with pytest.raises(UnknownSchema, match="Version 2"):
        service.version("s", 2)
    with pytest.raises(UnknownSchema, match="Schema 2"):
        service.schema_by_id(2)
    with pytest.raises(UnknownSchema):
        service.schema_by_guid(UUID(int=0))
    with pytest.raises(InvalidSchema, match="Invalid schema of type AVRO, details: "):
        service.register("s", SchemaText("{"))
    service.settings.set_mode("s", Mode.READONLY)
    with pytest.raises(RegistryRefused, match="read-only"):
        service.register("s", SchemaText(C))


def test_an_incompatible_schema_is_refused_with_both_versions_and_the_field(
    service: RegistryService, documents: MemoryDocuments
) -> None:
    inner = '{"type":"record","name":"S","fields":[{"name":"qty","type":"TYPE"}]}'
    text = '{"type":"record","name":"R","fields":[{"name":"order","type":' + inner + "}]}"
    service.register("s", SchemaText(text.replace("TYPE", "int")))
    before = documents.load()
    with pytest.raises(IncompatibleSchema) as caught:
        service.register("s", SchemaText(text.replace("TYPE", "string")))
    for part in ("oldSchemaVersion: 1", "newSchemaVersion: 2", "field:'order.qty'", "BACKWARD"):
        assert part in str(caught.value)
    assert documents.load() == before


@pytest.mark.parametrize(
    ("level", "history", "new", "is_refused"),
    [
        (Level.BACKWARD, [A, C], B, True),
        (Level.BACKWARD, [A, C], record("a:int", "c:int"), False),
        (Level.BACKWARD_TRANSITIVE, [A, C], record("a:int", "c:int"), True),
        (Level.FORWARD, [A], B, False),
        (Level.FORWARD, [B, A], record("a:int", "x:int"), False),
        (Level.FORWARD_TRANSITIVE, [B, A], record("a:int", "x:int"), True),
        (Level.FULL, [A], C, False),
        (Level.FULL, [A], B, True),
        (Level.FULL_TRANSITIVE, [A, C], record("a:int", "c:int"), True),
        (Level.NONE, [A], '"string"', False),
    ],
)
def test_levels(
    service: RegistryService, level: Level, history: list[str], new: str, is_refused: bool
) -> None:
    service.settings.update_config("s", {"level": Level.NONE})
    for text in history:
        put(service, "s", text)
    service.settings.update_config("s", {"level": level})
    if is_refused:
        assert refused(lambda: put(service, "s", new)) == 409
    else:
        assert put(service, "s", new) == len(history) + 1


# References


def test_what_is_referred_to_through_others_is_known(service: RegistryService) -> None:
    put(service, "a", record("x:int", name="A"))
    to_a = SchemaReference("A", "a", 1)
    put(service, "b", record("a:A", name="B"), references=(to_a,))
    put(service, "c", record("a:A", name="C"), references=(to_a,))
    to_b, to_c = SchemaReference("B", "b", 1), SchemaReference("C", "c", 1)
    text = '{"type":"record","name":"D","fields":[{"name":"b","type":"B"},{"name":"c","type":"C"}]}'
    put(service, "d", text, references=(to_b, to_c))
    found = service.find_version("d", 1)
    assert service.registration.resolved_text(found) == (
        '{"type":"record","name":"D","fields":[{"name":"b","type":{"type":"record","name":"B",'
        '"fields":[{"name":"a","type":{"type":"record","name":"A","fields":[{"name":"x","type":'
        '"int"}]}}]}},{"name":"c","type":{"type":"record","name":"C","fields":[{"name":"a","type":'
        '"A"}]}}]}'
    )
    assert service.referrers(service.find_version("a", 1)) == [2, 3]


def test_a_subject_may_refer_to_itself_and_be_deleted(service: RegistryService) -> None:
    service.settings.update_config("s", {"level": Level.NONE})
    put(service, "s", A)
    put(service, "s", record("r:R", name="S"), references=(SchemaReference("R", "s", 1),))
    assert refused(lambda: service.deletion.delete_version("s", 1)) == 42206
    assert service.deletion.delete_subject("s") == [1, 2]
    assert service.deletion.delete_subject("s", permanent=True) == [1, 2]


def test_a_deleted_version_that_is_referred_to_stays_when_its_schema_comes_back(
    service: RegistryService,
) -> None:
    put(service, "s", A)
    put(service, "t", record("r:R", name="S"), references=(SchemaReference("R", "s", 1),))
    service.deletion.delete_version("t", 1)
    service.deletion.delete_version("s", 1)
    assert put(service, "s", A) == 1
    assert [version.version for version in service.versions("s", Listed.ALL)] == [1, 2]


def test_references_do_not_lead_into_other_contexts_by_themselves(service: RegistryService) -> None:
    put(service, ":.ctx:s", A)
    text = record("r:R", name="S")
    here, there = SchemaReference("R", "s", 1), SchemaReference("R", ":.ctx:s", 1)
    assert refused(lambda: put(service, "t", text, references=(here,))) == 42201
    assert put(service, "t", text, references=(there,)) == 1
    assert refused(lambda: service.deletion.delete_subject(":.ctx:s")) == 42206


def test_more_references_than_anybody_needs_are_refused(
    service: RegistryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MAX_REFERENCED_SCHEMAS", 3)
    put(service, "s0", record("x:int", name="R0"))
    for n in range(1, 5):
        references = (SchemaReference(f"R{n - 1}", f"s{n - 1}", 1),)
        text = record(f"x:R{n - 1}", name=f"R{n}")
        if n < 4:
            put(service, f"s{n}", text, references=references)
    with pytest.raises(RegistryRefused, match="more than 3 schemas"):
        put(service, "s4", text, references=references)


# Contexts


@pytest.mark.parametrize(
    ("subject", "context", "name", "text"),
    [
        ("s", ".", "s", "s"),
        (":.:s", ".", "s", "s"),
        (":.ctx:s", ".ctx", "s", ":.ctx:s"),
        (":.ctx:", ".ctx", "", ":.ctx:"),
        (":.ctx", ".ctx", "", ":.ctx:"),
        (":.ctx:a:b", ".ctx", "a:b", ":.ctx:a:b"),
        (":ctx:s", ".", ":ctx:s", ":ctx:s"),
        (":*:s", "*", "s", ":*:s"),
        ("", ".", "", ""),
    ],
)
def test_subjects_name_their_context(subject: str, context: str, name: str, text: str) -> None:
    parsed = Qualified.parse(subject)
    assert (parsed.context, parsed.name, parsed.text) == (context, name, text)


def test_names_are_read_beside_others_and_below_paths() -> None:
    assert beside("s", "t") == "t"
    assert beside(":.ctx:s", "t") == ":.ctx:t"
    assert beside(":.ctx:s", ":.other:t") == ":.other:t"
    assert within("ctx", "s") == within(".ctx", "s") == within(":.ctx:", "s") == ":.ctx:s"
    assert within(".", "s") == "s"
    assert within(".ctx", ":.other:s") == ":.other:s"


def test_prefixes_are_of_one_context_unless_they_name_all() -> None:
    names = ["order", "other", ":.a:order", ":.ab:order"]
    shown = {
        prefix: [name for name in names if begins_with(name, prefix)]
        for prefix in ("", "or", ":*:", ":*:ot", ":.a:", ":.a:x", ":.a")
    }
    assert shown == {
        "": ["order", "other"],
        "or": ["order"],
        ":*:": names,
        ":*:ot": ["other"],
        ":.a:": [":.a:order"],
        ":.a:x": [],
        ":.a": [":.a:order", ":.ab:order"],
    }


def test_some_names_are_not_for_subjects() -> None:
    assert all(map(is_valid_subject, ["s", ":.ctx:s", "a/b", "ä", " ", "*"]))
    refusable = [
        "",
        ":.ctx:",
        "a\nb",
        "\x7f",
        "\ud800",
        "__GLOBAL",
        ":.ctx:__EMPTY",
        ":.__GLOBAL:s",
    ]
    assert not any(map(is_valid_subject, refusable))
    assert is_valid_subject(":.__GLOBAL:", for_settings=True)
