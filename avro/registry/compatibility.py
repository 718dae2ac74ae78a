"""Whether a new version keeps what its subject promises, in Confluent's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from duolog.avro.compatibility import Difference, Incompatibility, Level, incompatibilities
from duolog.avro.registry.model import Version
from duolog.avro.registry.parsing import Parsed
from duolog.errors import InvalidSchema

_SHOWN_CHARACTERS: Final = 10 * 1024

_DESCRIPTIONS: Final = {
    Difference.FIXED_SIZE_MISMATCH: (
        "The size of FIXED type field at path '{path}' in the {reader} schema does not match with "
        "the {writer} schema"
    ),
    Difference.TYPE_MISMATCH: (
        "The type (path '{path}') of a field in the {reader} schema does not match with the "
        "{writer} schema"
    ),
    Difference.NAME_MISMATCH: "The name of the schema has changed (path '{path}')",
    Difference.MISSING_ENUM_SYMBOLS: (
        "The {reader} schema is missing enum symbols '{detail}' at path '{path}' in the {writer} "
        "schema"
    ),
    Difference.MISSING_UNION_BRANCH: (
        "The {reader} schema is missing a type inside a union field at path '{path}' in the "
        "{writer} schema"
    ),
    Difference.READER_FIELD_MISSING_DEFAULT_VALUE: (
        "The field '{detail}' at path '{path}' in the {reader} schema has no default value and is "
        "missing in the {writer} schema"
    ),
    Difference.AMBIGUOUS_FIELD: (
        "The field at path '{path}' in the {reader} schema matches several fields in the {writer} "
        "schema"
    ),
}


def broken_promises(
    level: Level,
    new: Parsed,
    previous: Sequence[Version],
    parsed: Callable[[Version], Parsed],
    *,
    new_version: int | None = None,
) -> list[str]:
    """What the level forbids between `new` and `previous`, which are in order.

    Empty when nothing is. Otherwise it is about the newest version that stands against it.
    """
    if level is Level.NONE:
        return []
    checked = previous if level.is_transitive else previous[-1:]
    for version in reversed(checked):
        old = parsed(version)
        messages = []
        if level.is_forward:
            messages += _messages(old, new, "old", "new")
        if level.is_backward:
            messages += _messages(new, old, "new", "old")
        if messages:
            messages.append(f"{{oldSchemaVersion: {version.version}}}")
            if new_version is not None:
                messages.append(f"{{newSchemaVersion: {new_version}}}")
            text = version.content.text
            if len(text) <= _SHOWN_CHARACTERS:
                messages.append(f"{{oldSchema: '{text}'}}")
            else:
                messages.append(f"{{oldSchema: <truncated> '{text[:_SHOWN_CHARACTERS]}...'}}")
            messages.append(f"{{validateFields: 'false', compatibility: '{level}'}}")
            return messages
    return []


def _messages(reader: Parsed, writer: Parsed, reader_word: str, writer_word: str) -> list[str]:
    try:
        found = incompatibilities(
            reader.tree,
            writer.tree,
            reader_types=reader.types,
            writer_types=writer.types,
        )
    except InvalidSchema as error:
        return [f"Unexpected exception during compatibility check: {error}"]
    return [_message(difference, reader_word, writer_word) for difference in found]


def _message(found: Incompatibility, reader: str, writer: str) -> str:
    description = _DESCRIPTIONS[found.type].format(
        path=found.path, detail=found.detail, reader=reader, writer=writer
    )
    field = f", field:'{found.field}'" if found.field else ""
    return (
        f"{{errorType:'{found.type}', description:'{description}', "
        f"additionalInfo:'{found.detail}'{field}}}"
    )
