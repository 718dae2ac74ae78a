"""Which schema records are written with, and under which subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duolog.avro.registry.option_names import BOTH_STRATEGIES
from duolog.avro.registry.subject_names import SubjectNameStrategy
from duolog.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class SerializerOptions:
    """Which schema records are written with, and under which subject."""

    auto_register_schemas: bool = True
    use_latest_version: bool = False
    use_schema_id: int | None = None
    latest_compatibility_strict: bool = True
    id_compatibility_strict: bool = True
    normalize_schemas: bool = False
    key_strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC
    value_strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC


SERIALIZER_FIELDS: Final = {
    "auto.register.schemas": "auto_register_schemas",
    "use.latest.version": "use_latest_version",
    "use.schema.id": "use_schema_id",
    "latest.compatibility.strict": "latest_compatibility_strict",
    "id.compatibility.strict": "id_compatibility_strict",
    "normalize.schemas": "normalize_schemas",
    "key.subject.name.strategy": "key_strategy",
    "value.subject.name.strategy": "value_strategy",
}


def serializer_options(read: Mapping[str, Any]) -> SerializerOptions:
    options = {field: read[name] for name, field in SERIALIZER_FIELDS.items() if name in read}
    if BOTH_STRATEGIES in read:
        for field in ("key_strategy", "value_strategy"):
            options.setdefault(field, read[BOTH_STRATEGIES])
    latest, schema_id = options.get("use_latest_version"), options.get("use_schema_id")
    if latest and schema_id is not None:
        raise InvalidSetting(
            "use.latest.version and use.schema.id are both set, and each names a schema. Leave "
            "one out."
        )
    if latest or schema_id is not None:
        chosen = "use.latest.version" if latest else "use.schema.id"
        if options.get("auto_register_schemas"):
            raise InvalidSetting(
                f"auto.register.schemas=true and {chosen} contradict each other: the first writes "
                f"with the columns' own schema. Set auto.register.schemas=false, or leave {chosen} "
                "out."
            )
        options["auto_register_schemas"] = False
    return SerializerOptions(**options)
