"""A registry's documents as bytes.

| key                         | value                                                      |
|-----------------------------|------------------------------------------------------------|
| `context/<name>`            | the next id, and whether the context is listed             |
| `schema/<context>/<id>`     | type, text, references, metadata, rules                    |
| `version/<subject>/<n>`     | which id; whether deleted                                  |
| `config/<subject>`          | settings of a subject or context; `config/`: of all        |
| `mode/<subject>`            | mode, likewise                                             |

Values are JSON and begin with the number of their format. They say what they are about, so keys
are never taken apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from duolog.avro.registry.model import Config, Content, Mode, Version
from duolog.avro.registry.wire_names import (
    config_json,
    config_of,
    metadata_json,
    metadata_of,
    references_json,
    references_of,
    rules_json,
    rules_of,
)
from duolog.errors import DamagedLog, UnsupportedFormat

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Context:
    """The ids of one context. They go on after all its subjects are gone."""

    name: str
    next_id: int = 1
    listed: bool = True


@dataclass(slots=True)
class Batch:
    """Changes that become true together."""

    versions: list[Version] = field(default_factory=list)  # new or changed
    dropped: list[Version] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    configs: dict[str, Config | None] = field(default_factory=dict)  # "": of all subjects
    modes: dict[str, Mode | None] = field(default_factory=dict)


def encode(batch: Batch, orphaned_ids: Iterable[tuple[str, int]]) -> dict[bytes, bytes | None]:
    """The documents to write. `orphaned_ids` are (context, id) that no version has any more."""
    changes: dict[bytes, bytes | None] = {}
    for version in batch.dropped:
        changes[_version_key(version)] = None
    for context, schema_id in orphaned_ids:
        changes[_schema_key(context, schema_id)] = None
    for version in batch.versions:
        content = version.content
        changes[_schema_key(version.context, version.id)] = _value(
            context=version.context,
            id=version.id,
            type=content.type,
            text=content.text,
            references=references_json(content.references),
            metadata=None if content.metadata is None else metadata_json(content.metadata),
            ruleSet=None if content.rules is None else rules_json(content.rules),
        )
        changes[_version_key(version)] = _value(
            subject=version.subject,
            version=version.version,
            id=version.id,
            deleted=version.deleted,
        )
    for context_ids in batch.contexts:
        changes[f"context/{context_ids.name}".encode()] = _value(
            name=context_ids.name, next_id=context_ids.next_id, listed=context_ids.listed
        )
    for subject, config in batch.configs.items():
        changes[f"config/{subject}".encode()] = (
            None if config is None else _value(subject=subject, config=config_json(config))
        )
    for subject, mode in batch.modes.items():
        changes[f"mode/{subject}".encode()] = (
            None if mode is None else _value(subject=subject, mode=mode.value)
        )
    return changes


def decode(documents: Mapping[bytes, bytes]) -> Batch:
    """All that is stored, as one batch."""
    batch = Batch()
    contents: dict[tuple[str, int], Content] = {}
    versions: list[tuple[bytes, dict[str, Any]]] = []
    for key, value in sorted(documents.items()):
        written = _read(key, value)
        try:
            match key.partition(b"/")[0]:
                case b"context":
                    batch.contexts.append(
                        Context(written["name"], written["next_id"], written["listed"])
                    )
                case b"schema":
                    contents[written["context"], written["id"]] = _content(written)
                case b"version":
                    versions.append((key, written))
                case b"config":
                    batch.configs[written["subject"]] = config_of(written["config"])
                case b"mode":
                    batch.modes[written["subject"]] = Mode(written["mode"])
                case _:
                    raise UnsupportedFormat(
                        f"The schema registry has a document '{_shown(key)}' of an unknown kind. "
                        "Use the Duolog that wrote it, or a newer one."
                    )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(key) from error
    for key, written in versions:
        try:
            version = Version(
                written["subject"],
                written["version"],
                written["id"],
                Content(""),
                written["deleted"],
            )
            content = contents[version.context, version.id]
        except (KeyError, TypeError, AttributeError) as error:
            raise _damaged(key) from error
        batch.versions.append(
            Version(version.subject, version.version, version.id, content, version.deleted)
        )
    return batch


def _content(written: dict[str, Any]) -> Content:
    metadata, rules = written["metadata"], written["ruleSet"]
    return Content(
        written["text"],
        written["type"],
        references_of(written["references"]),
        None if metadata is None else metadata_of(metadata),
        None if rules is None else rules_of(rules),
    )


def _version_key(version: Version) -> bytes:
    return f"version/{version.subject}/{version.version}".encode()


def _schema_key(context: str, schema_id: int) -> bytes:
    return f"schema/{context}/{schema_id}".encode()


def _value(**members: object) -> bytes:
    document = {"format": FORMAT, **members}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _read(key: bytes, value: bytes) -> dict[str, Any]:
    try:
        written = json.loads(value)
    except ValueError as error:
        raise _damaged(key) from error
    if not isinstance(written, dict) or not isinstance(written.get("format"), int):
        raise _damaged(key)
    if written["format"] != FORMAT:
        raise UnsupportedFormat(
            f"The schema registry's document '{_shown(key)}' has format {written['format']}; this "
            f"Duolog reads format {FORMAT}. Use the Duolog that wrote it, or a newer one."
        )
    return written


def _damaged(key: bytes) -> DamagedLog:
    return DamagedLog(
        f"The schema registry's document '{_shown(key)}' is not as it was written. Restore a "
        "backup of the log."
    )


def _shown(key: bytes) -> str:
    return key.decode(errors="replace")
