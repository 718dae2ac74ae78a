"""Errors on the wire: {error, code, details}, the same error on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from duolog import errors
from duolog.errors import (
    Conflict,
    DamagedBatch,
    DamagedPart,
    DuologError,
    HostFailed,
    HostMismatch,
    HostRefused,
    InvalidRequest,
    KafkaUnreachable,
    KafkaWorkerUnavailable,
    LogUnusable,
    NotFound,
    OffsetOutOfRange,
    RecordTooLarge,
    RequestTooLarge,
    TooBusy,
    WriterFault,
    WritesRefused,
)

_STATUSES: Final[tuple[tuple[type[DuologError], int], ...]] = (
    (RecordTooLarge, 413),
    (RequestTooLarge, 413),
    (InvalidRequest, 400),
    (HostRefused, 401),
    (NotFound, 404),
    (HostMismatch, 409),
    (Conflict, 409),
    (WriterFault, 409),
    (OffsetOutOfRange, 416),
    (DamagedPart, 422),
    (WritesRefused, 503),
    (DamagedBatch, 500),  # asking again does not help
    (LogUnusable, 503),
    (TooBusy, 503),
    (KafkaUnreachable, 503),
    (KafkaWorkerUnavailable, 503),
)


def status_of(error: DuologError) -> int:
    """The HTTP status for an error that was raised on purpose."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def failure_of(error: DuologError) -> dict[str, Any]:
    """The body for an error."""
    details = {
        name: value
        for name, value in vars(error).items()
        if value is None or isinstance(value, bool | int | float | str)
    }
    return {"error": str(error), "code": error.code, "details": details}


def error_of(body: Any) -> DuologError | None:
    """The error that a body holds; None when it holds none."""
    if not isinstance(body, Mapping) or "error" not in body:
        return None
    message, code = str(body["error"]), body.get("code")
    details = body.get("details") or {}
    kind = getattr(errors, code, None) if code in errors.__all__ else None
    if kind is None:
        return HostFailed(f"{message} (The host calls it {code}, which this Duolog does not know.)")
    try:
        return _made(kind, message, details)
    except TypeError:  # with fields of another version
        return HostFailed(message)


def _made(kind: type[DuologError], message: str, details: Mapping[str, Any]) -> DuologError:
    try:
        return kind(message, **details)
    except TypeError:  # one that words its message itself, from its fields
        return kind(**details)
