"""What a host's answer means: a success, a named error, or a reason to ask again. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duolog.client.patience import Failure
from duolog.errors import (
    DiskFull,
    DuologError,
    HostFailed,
    HostMismatch,
    HostRefused,
    NotWritten,
    TooBusy,
)
from duolog.reach.address import Address
from duolog.reach.failures import error_of

_FOR_NOW: Final = frozenset({408, 429, 502, 503, 504})
_NOTHING_DONE: Final = (TooBusy, DiskFull, NotWritten)
_FIELDS: Final = {"holder": "holder", "topic": "topic", "partition_id": "partition"} | {
    name: name
    for name in (
        "offset",
        "earliest",
        "latest",
        "topic_id",
        "first_offset",
        "next_offset",
        "reason",
    )
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]  # by small letters
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


def judged(address: Address, answer: Answer, *, wants: str) -> DuologError | Failure | None:
    """None for a success of the media type that was wanted."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status == 200 and kind == wants:
        return None
    said = _object(answer) if kind == "application/json" else None
    if said is None or "error" not in said:
        if answer.status in _FOR_NOW:  # of a proxy between
            return Failure(f"status {answer.status}", True, None, _retry_after(answer))
        return HostMismatch(
            f"What answers at {address} (status {answer.status}) is no host of a Duolog log. "
            "Check the url and its path."
        )
    if answer.status in {401, 403}:
        return HostRefused(str(said["error"]))
    if answer.status == 500 and said.get("code") == "InternalError":
        return HostFailed(str(said["error"]))
    error = error_of({**said, "details": _details(said)})
    assert error is not None  # noqa: S101 - it holds one, as was seen above
    if answer.status in _FOR_NOW:
        may_be_done = not isinstance(error, _NOTHING_DONE)
        return Failure(str(error), may_be_done, error, _retry_after(answer))
    return error


def _object(answer: Answer) -> dict[str, Any] | None:
    try:
        said = answer.json()
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _details(said: Mapping[str, Any]) -> dict[str, Any]:
    return {ours: said[theirs] for theirs, ours in _FIELDS.items() if theirs in said}


def _retry_after(answer: Answer) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0.0
