"""The values of the model in JSON, with the names of Confluent's API. Stored in the same form.

What is empty is left out, as Confluent does.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from duolog.avro.compatibility import Level
from duolog.avro.registry.model import Config
from duolog.avro.registry.port import SchemaReference
from duolog.avro.registry.rules import Metadata, Rule, RuleKind, RuleMode, RuleSet

Json: TypeAlias = dict[str, Any]

CONFIG_NAMES: Final = {
    "alias": "alias",
    "alias_for_deks": "aliasForDeks",
    "normalize": "normalize",
    "validate_fields": "validateFields",
    "validate_new_schemas": "validateNewSchemas",
    "validate_rules": "validateRules",
    "level": "compatibilityLevel",
    "compatibility_policy": "compatibilityPolicy",
    "compatibility_group": "compatibilityGroup",
    "default_metadata": "defaultMetadata",
    "override_metadata": "overrideMetadata",
    "default_rules": "defaultRuleSet",
    "override_rules": "overrideRuleSet",
}


def references_json(references: tuple[SchemaReference, ...]) -> list[Json]:
    return [
        {"name": reference.name, "subject": reference.subject, "version": reference.version}
        for reference in references
    ]


def references_of(written: list[Json]) -> tuple[SchemaReference, ...]:
    return tuple(
        SchemaReference(part["name"], part["subject"], part["version"]) for part in written
    )


def metadata_json(metadata: Metadata) -> Json:
    return without_empty(
        {
            "tags": {tag: list(subjects) for tag, subjects in metadata.tags},
            "properties": dict(metadata.properties),
            "sensitive": list(metadata.sensitive),
        }
    )


def metadata_of(written: Json) -> Metadata:
    return Metadata.of(written.get("tags"), written.get("properties"), written.get("sensitive"))


def rules_json(rules: RuleSet) -> Json:
    return without_empty(
        {
            "migrationRules": [_rule_json(rule) for rule in rules.migration],
            "domainRules": [_rule_json(rule) for rule in rules.domain],
            "encodingRules": [_rule_json(rule) for rule in rules.encoding],
            "enableAt": rules.enable_at,
        }
    )


def _rule_json(rule: Rule) -> Json:
    return without_empty(
        {
            "name": rule.name,
            "doc": rule.doc,
            "kind": rule.kind.value,
            "mode": rule.mode.value,
            "type": rule.type,
            "tags": list(rule.tags),
            "params": dict(rule.params),
            "expr": rule.expr,
            "onSuccess": rule.on_success,
            "onFailure": rule.on_failure,
            "disabled": rule.disabled,
        }
    )


def rules_of(written: Json) -> RuleSet:
    migration, domain, encoding = (
        tuple(_rule_of(rule) for rule in written.get(part) or ())
        for part in ("migrationRules", "domainRules", "encodingRules")
    )
    return RuleSet(migration, domain, encoding, written.get("enableAt"))


def _rule_of(written: Json) -> Rule:
    return Rule(
        name=written.get("name"),
        doc=written.get("doc"),
        kind=RuleKind(written.get("kind") or RuleKind.TRANSFORM),
        mode=RuleMode(written.get("mode") or RuleMode.WRITEREAD),
        type=written.get("type"),
        tags=tuple(sorted(set(written.get("tags") or ()))),
        params=tuple(sorted((written.get("params") or {}).items())),
        expr=written.get("expr"),
        on_success=written.get("onSuccess"),
        on_failure=written.get("onFailure"),
        disabled=bool(written.get("disabled")),
    )


def config_json(config: Config) -> Json:
    written: Json = {}
    for name, wire_name in CONFIG_NAMES.items():
        value = getattr(config, name)
        match value:
            case Metadata():
                written[wire_name] = metadata_json(value)
            case RuleSet():
                written[wire_name] = rules_json(value)
            case Level():
                written[wire_name] = value.value
            case None:
                pass
            case _:
                written[wire_name] = value
    return written


def config_of(written: Json) -> Config:
    values: Json = {}
    for name, wire_name in CONFIG_NAMES.items():
        value = written.get(wire_name)
        if value is None:
            continue
        if name.endswith("_metadata"):
            values[name] = metadata_of(value)
        elif name.endswith("_rules") and name != "validate_rules":
            values[name] = rules_of(value)
        elif name == "level":
            values[name] = Level(value)
        else:
            values[name] = value
    return Config(**values)


def without_empty(written: Json) -> Json:
    return {name: value for name, value in written.items() if value not in (None, "", [], {})}
