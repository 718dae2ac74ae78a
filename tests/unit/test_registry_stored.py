"""What a registry stores, in which form, and what it refuses to read."""

from __future__ import annotations

import pytest

from duolog.avro.compatibility import Level
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.model import Config, Content, Mode
from duolog.avro.registry.port import SchemaReference
from duolog.avro.registry.rules import Metadata, Rule, RuleMode, RuleSet
from duolog.avro.registry.service import Listed, RegistryService
from duolog.errors import DamagedLog, UnsupportedFormat
from tests.unit.registry_schemas import A, B, put


@pytest.fixture
def documents() -> MemoryDocuments:
    return MemoryDocuments()


@pytest.fixture
def service(documents: MemoryDocuments) -> RegistryService:
    return RegistryService(documents)


RULES = RuleSet(domain=(Rule(name="r", type="CEL", mode=RuleMode.WRITE, expr="true"),))
STORED_BY_FORMAT_1 = {
    b"context/.": b'{"format":1,"name":".","next_id":3,"listed":true}',
    b"context/.ctx": b'{"format":1,"name":".ctx","next_id":2,"listed":true}',
    b"schema/./1": (
        b'{"format":1,"context":".","id":1,"type":"AVRO","text":"{\\"type\\":\\"record\\",'
        b'\\"name\\":\\"R\\",\\"fields\\":[{\\"name\\":\\"a\\",\\"type\\":\\"int\\"}]}",'
        b'"references":[],"metadata":null,"ruleSet":null}'
    ),
    b"schema/./2": (
        b'{"format":1,"context":".","id":2,"type":"AVRO","text":"{\\"type\\":\\"array\\",'
        b'\\"items\\":\\"R\\"}","references":[{"name":"R","subject":"s","version":1}],"metadata":'
        b'{"tags":{"x":["PII"]},"properties":{"owner":"\xc3\xa4"},"sensitive":["owner"]},"ruleSet":'
        b'{"domainRules":[{"name":"r","kind":"TRANSFORM","mode":"WRITE","type":"CEL","expr":"true",'
        b'"disabled":false}]}}'
    ),
    b"schema/.ctx/1": (
        b'{"format":1,"context":".ctx","id":1,"type":"AVRO","text":"\\"string\\"","references":[],'
        b'"metadata":null,"ruleSet":null}'
    ),
    b"version/s/1": b'{"format":1,"subject":"s","version":1,"id":1,"deleted":false}',
    b"version/a/b/1": b'{"format":1,"subject":"a/b","version":1,"id":2,"deleted":true}',
    b"version/:.ctx:s/1": b'{"format":1,"subject":":.ctx:s","version":1,"id":1,"deleted":false}',
    b"config/": b'{"format":1,"subject":"","config":{"compatibilityLevel":"FULL"}}',
    b"config/s": (
        b'{"format":1,"subject":"s","config":{"normalize":true,"defaultMetadata":'
        b'{"properties":{"team":"x"}}}}'
    ),
    b"mode/s": b'{"format":1,"subject":"s","mode":"READONLY"}',
}


def test_documents_are_written_in_this_form(
    service: RegistryService, documents: MemoryDocuments
) -> None:
    put(service, "s", A)
    metadata = Metadata.of({"x": ["PII"]}, {"owner": "ä"}, ["owner"])
    references = (SchemaReference("R", "s", 1),)
    array = '{"type": "array", "items": "R"}'
    put(service, "a/b", array, references=references, metadata=metadata, rules=RULES)
    service.deletion.delete_version("a/b", 1)
    put(service, ":.ctx:s", '"string"')
    service.settings.update_config("", {"level": Level.FULL})
    default = Metadata.of(properties={"team": "x"})
    service.settings.update_config("s", {"normalize": True, "default_metadata": default})
    service.settings.set_mode("s", Mode.READONLY)
    assert documents.load() == STORED_BY_FORMAT_1


def test_documents_of_format_1_are_read() -> None:
    service = RegistryService(MemoryDocuments(STORED_BY_FORMAT_1))
    assert service.subjects(":*:") == [":.ctx:s", "s"]
    (deleted,) = service.versions("a/b", Listed.DELETED)
    assert deleted.content == Content(
        '{"type":"array","items":"R"}',
        references=(SchemaReference("R", "s", 1),),
        metadata=Metadata.of({"x": ["PII"]}, {"owner": "ä"}, ["owner"]),
        rules=RULES,
    )
    assert service.settings.config() == Config(level=Level.FULL)
    assert service.settings.config_in_scope("s").normalize is True
    assert service.settings.mode("s") is Mode.READONLY
    assert put(service, "next", B) == 3


@pytest.mark.parametrize("key", STORED_BY_FORMAT_1)
def test_documents_of_an_unknown_format_are_refused_by_name(key: bytes) -> None:
    newer = STORED_BY_FORMAT_1[key].replace(b'"format":1', b'"format":2')
    with pytest.raises(UnsupportedFormat, match=f"'{key.decode()}' has format 2"):
        RegistryService(MemoryDocuments({**STORED_BY_FORMAT_1, key: newer}))


def test_documents_of_an_unknown_kind_are_refused_by_name() -> None:
    documents = MemoryDocuments({b"exporter/x": b'{"format":1}'})
    with pytest.raises(UnsupportedFormat, match="'exporter/x' of an unknown kind"):
        RegistryService(documents)


@pytest.mark.parametrize("key", STORED_BY_FORMAT_1)
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"format":1}', b'{"format":"1"}'])
def test_damaged_documents_are_refused_by_name(key: bytes, damage: bytes) -> None:
    documents = MemoryDocuments({**STORED_BY_FORMAT_1, key: damage})
    with pytest.raises(DamagedLog, match=f"'{key.decode()}' is not as it was written"):
        RegistryService(documents)


def test_a_version_without_its_schema_is_damage() -> None:
    documents = dict(STORED_BY_FORMAT_1)
    del documents[b"schema/./1"]
    with pytest.raises(DamagedLog, match="version/s/1"):
        RegistryService(MemoryDocuments(documents))
