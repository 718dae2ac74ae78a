"""Bodies of requests and answers, with Confluent's names. Unknown members are passed over."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from duolog.avro.compatibility import Level
from duolog.avro.registry import refusals
from duolog.avro.registry.model import AVRO, MAX_NUMBER, Candidate, Version
from duolog.avro.registry.port import SchemaReference
from duolog.avro.registry.rules import Metadata, RuleKind, RuleMode, RuleSet
from duolog.avro.registry.wire_names import (
    CONFIG_NAMES,
    Json,
    metadata_json,
    metadata_of,
    references_json,
    rules_json,
    rules_of,
)

Number = Annotated[int, Field(ge=-MAX_NUMBER - 1, le=MAX_NUMBER)]


class _Body(BaseModel):
    model_config = ConfigDict(
        extra="ignore", alias_generator=to_camel, validate_by_name=False, coerce_numbers_to_str=True
    )


class ReferenceBody(_Body):
    name: str | None = None
    subject: str | None = None
    version: Number | None = None


class MetadataBody(_Body):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class RuleBody(_Body):
    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = None
    mode: RuleMode | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


class RuleSetBody(_Body):
    migration_rules: list[RuleBody] | None = None
    domain_rules: list[RuleBody] | None = None
    encoding_rules: list[RuleBody] | None = None
    enable_at: str | None = None


class SchemaBody(_Body):
    """A schema to register, look up or check."""

    text: str | None = Field(None, alias="schema", description="The schema's text.")
    schema_type: str | None = Field(None, description="AVRO, which is also the default.")
    references: list[ReferenceBody] | None = None
    metadata: MetadataBody | None = None
    rule_set: RuleSetBody | None = None
    version: Number | None = Field(None, description="The next one; -1 for the same.")
    id: Number | None = Field(None, description="Only in import mode.")

    def candidate(self) -> Candidate:
        return Candidate(
            text=self.text,
            type=self.schema_type or AVRO,
            references=tuple(_reference(written) for written in self.references or ()),
            metadata=_metadata(self.metadata),
            rules=_rules(self.rule_set),
            version=max(self.version or 0, -1),
            id=self.id if self.id is not None and self.id >= 0 else None,
        )


class ConfigBody(_Body):
    """Settings to change. Null takes one away; what is not named stays."""

    compatibility: str | None = Field(None, examples=["FULL"])
    compatibility_level: str | None = Field(None, description="The same.")
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: MetadataBody | None = None
    override_metadata: MetadataBody | None = None
    default_rule_set: RuleSetBody | None = None
    override_rule_set: RuleSetBody | None = None

    def changes(self) -> dict[str, Any]:
        """By the names of `Config`."""
        given = {to_camel(name): getattr(self, name) for name in self.model_fields_set}
        if "compatibility" in given:
            given["compatibilityLevel"] = given.pop("compatibility")
        return {
            name: _setting(given[wire_name]) if name != "level" else _level(given[wire_name])
            for name, wire_name in CONFIG_NAMES.items()
            if wire_name in given
        }


class ModeBody(_Body):
    mode: str | None = Field(None, examples=["READWRITE"])


def _reference(written: ReferenceBody) -> SchemaReference:
    if written.name is None or written.subject is None or written.version is None:
        raise refusals.invalid_schema(
            f"Invalid reference: {written.model_dump()}. It needs a name, a subject and a version."
        )
    return SchemaReference(written.name, written.subject, written.version)


def _setting(written: object) -> object:
    match written:
        case MetadataBody():
            return _metadata(written)
        case RuleSetBody():
            return _rules(written)
        case _:
            return written


def _metadata(written: MetadataBody | None) -> Metadata | None:
    return None if written is None else metadata_of(written.model_dump(by_alias=True))


def _rules(written: RuleSetBody | None) -> RuleSet | None:
    return None if written is None else rules_of(written.model_dump(by_alias=True))


def _level(word: str | None) -> Level | None:
    if word is None:
        return None
    try:
        return Level(word.upper())
    except ValueError:
        raise refusals.invalid_level() from None


def version_json(version: Version, text: str | None = None) -> Json:
    """A version with all that is known of it. `text` is its schema in another form."""
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        **content_json(version, text),
        **({"deleted": True} if version.deleted else {}),
    }


def content_json(version: Version, text: str | None = None) -> Json:
    """What goes for every version with this id."""
    content = version.content
    written: Json = {"guid": str(content.guid), "schemaType": content.type}
    if content.references:
        written["references"] = references_json(content.references)
    if content.metadata is not None:
        written["metadata"] = metadata_json(content.metadata)
    if content.rules is not None:
        written["ruleSet"] = rules_json(content.rules)
    return {**written, "schema": content.text if text is None else text}


class ErrorBody(BaseModel):
    """Every answer of no."""

    error_code: int
    message: str


class ReferenceAnswer(_Body):
    name: str
    subject: str
    version: int


class SchemaAnswer(_Body):
    """A schema. What is empty is left out."""

    subject: str | None = None
    version: int | None = None
    id: int | None = None
    guid: str
    schema_type: str
    references: list[ReferenceAnswer] | None = None
    metadata: MetadataBody | None = None
    rule_set: RuleSetBody | None = None
    text: str = Field(alias="schema")
    deleted: bool | None = None
    max_id: int | None = None


class ConfigAnswer(_Body):
    compatibility_level: Level | None = None
    alias: str | None = None
    normalize: bool | None = None


class ConfigEcho(_Body):
    compatibility: Level | None = None
    alias: str | None = None
    normalize: bool | None = None


class ModeAnswer(_Body):
    mode: str | None = None


class CheckAnswer(BaseModel):
    is_compatible: bool
    messages: list[str] | None = None


class SubjectVersion(_Body):
    subject: str
    version: int


class ContextId(_Body):
    context: str
    id: int
