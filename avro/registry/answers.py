"""What a registry answered, as values or as errors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from duolog.avro.registry.port import RegisteredSchema, SchemaReference, SchemaText
from duolog.avro.registry.refusals import named
from duolog.errors import (
    DuologError,
    IncompatibleSchema,
    InvalidSchema,
    RegistryRefused,
    UnknownSchema,
    UnknownSubject,
)

_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back to one request. `asked` continues "to ..." in messages."""

    asked: str
    url: str
    status: int
    content: bytes
    retry_after_seconds: float = 0.0

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def value(self) -> Any:
        """The JSON of a success, the error of a refusal."""
        if not self.is_success:
            raise self.refusal()
        return self._decoded()

    def refusal(self) -> DuologError:
        """The error of an answer of no."""
        error_code, told = _told(self.content)
        if error_code is None:
            error_code = self.status
        message = f"The schema registry at {self.url} was asked to {self.asked}: "
        message += f"{told or 'it refused'} (status {self.status}, error code {error_code})."
        return self._named(error_code, message)

    def strange(self) -> RegistryRefused:
        """The error of a success that no registry would send."""
        return RegistryRefused(
            f"What answers at {self.url} does not speak as a schema registry: asked to "
            f"{self.asked}, it sent {_shown(self.content)}. Check schema.registry.url.",
            status=self.status,
            error_code=self.status,
        )

    def _named(self, error_code: int, message: str) -> DuologError:
        advice = _ADVICE.get(error_code) or _ADVICE.get(self.status)
        if advice is not None:
            message += f" {advice}"
        kind = _KINDS.get(error_code)
        if kind is not None:
            return kind(message)
        if self.status == 409:
            return IncompatibleSchema(message)
        return named(RegistryRefused(message, status=self.status, error_code=error_code))

    def _decoded(self) -> Any:
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            raise self.strange() from None

    def schema_id(self) -> int:
        """The id of {"id": 7}."""
        value = self.value()
        if not isinstance(value, dict):
            raise self.strange()
        return self._whole(value.get("id"))

    def schema(self) -> SchemaText:
        """The schema of {"schema": "…"}."""
        return self._schema(self.value())

    def registered(self) -> RegisteredSchema:
        """The version of a subject."""
        value = self.value()
        schema = self._schema(value)
        subject = value.get("subject")
        if not isinstance(subject, str):
            raise self.strange()
        return RegisteredSchema(
            subject, self._whole(value.get("version")), self._whole(value.get("id")), schema
        )

    def _schema(self, value: Any) -> SchemaText:
        if not isinstance(value, dict):
            raise self.strange()
        text, kind = value.get("schema"), value.get("schemaType") or "AVRO"
        references = value.get("references") or []
        if not (isinstance(text, str) and isinstance(kind, str) and isinstance(references, list)):
            raise self.strange()
        return SchemaText(text, kind, tuple(self._reference(item) for item in references))

    def _reference(self, value: Any) -> SchemaReference:
        if not isinstance(value, dict):
            raise self.strange()
        name, subject = value.get("name"), value.get("subject")
        if not (isinstance(name, str) and isinstance(subject, str)):
            raise self.strange()
        return SchemaReference(name, subject, self._whole(value.get("version")))

    def _whole(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.strange()
        return value


# Those of refusals.py, and what other registries than Confluent's and ours use beside them.
_KINDS: Final[dict[int, type[DuologError]]] = {
    40404: UnknownSubject,
    40406: UnknownSchema,
    44201: InvalidSchema,
}

_INCOMPATIBLE: Final = (
    "Give new fields a default, keep those that readers need, or change the subject's "
    "compatibility."
)
_CREDENTIALS: Final = "Give basic.auth.user.info or bearer.auth.token of somebody who may."

_ADVICE: Final = {
    401: _CREDENTIALS,
    403: _CREDENTIALS,
    404: "If that should be there, check the path in schema.registry.url.",
    409: _INCOMPATIBLE,
    40401: "Register a schema under it, or set auto.register.schemas=true.",
    40403: "The records are from another registry, or the schema was deleted.",
    429: "It asks to be left alone for a while.",
}


def _told(content: bytes) -> tuple[int | None, str]:
    """Error code and message of the body of a refusal."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None, _shown(content) if content else ""
    if not isinstance(value, dict):
        return None, _shown(content)
    error_code, message = value.get("error_code"), value.get("message")
    if not isinstance(error_code, int) or isinstance(error_code, bool):
        error_code = None
    if not isinstance(message, str):
        return error_code, _shown(content)
    return error_code, message.strip().rstrip(".")


def _shown(content: bytes) -> str:
    text = content[: 4 * _SHOWN_CHARACTERS].decode(errors="replace")
    if len(text) > _SHOWN_CHARACTERS:
        text = text[: _SHOWN_CHARACTERS - 3] + "..."
    return repr(text)
