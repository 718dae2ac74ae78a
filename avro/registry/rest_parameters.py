"""What stands in paths and queries, read as Java reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

from fastapi import Body, Path, Query
from pydantic import BeforeValidator
from starlette.requests import Request

from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import within
from duolog.avro.registry.model import Version
from duolog.avro.registry.rest_http import MEDIA_TYPE
from duolog.avro.registry.rest_models import Number
from duolog.avro.registry.service import Listed

T = TypeVar("T")

MAX_LISTED_SCHEMAS: Final = 1000
MAX_LISTED_BYTES: Final = 8 << 20  # of schemas in one answer


def _integer(written: object) -> object:
    if isinstance(written, str) and not re.fullmatch(r"[+-]?[0-9]{1,10}", written):
        raise ValueError("not a number")
    return written


def _flag(written: object) -> object:
    """Java's: whatever is not true is false. Python's clients write True and False."""
    return written.lower() == "true" if isinstance(written, str) else written


Flag = Annotated[bool, BeforeValidator(_flag), Query()]
SchemaId = Annotated[Number, BeforeValidator(_integer), Path(alias="id")]
Format = Annotated[str, Query(description="`resolved`: with all that it refers to written out.")]
Deleted = Annotated[bool, BeforeValidator(_flag), Query(description="Deleted ones too.")]
Offset = Annotated[Number, BeforeValidator(_integer), Query(description="How many to pass over.")]
Limit = Annotated[
    Number, BeforeValidator(_integer), Query(description="How many at most; -1 for all.")
]
JSON_BODY: Final = Body(media_type=MEDIA_TYPE)
VersionNumber = Annotated[str, Path(description="1 or more, or `latest`, or -1 for the same.")]


def version_number(written: str) -> int:
    """-1 is the latest. Raises 42202."""
    word = written.strip()
    if word.lower() == "latest":
        return -1
    number = int(word) if re.fullmatch(r"[+-]?[0-9]{1,10}", word) else 0
    if number != -1 and not 1 <= number < 2**31:
        raise refusals.invalid_version(written)
    return number


def scoped(request: Request, subject: str) -> str:
    """The subject, in the context that the path begins with, if it does."""
    context = request.path_params.get("context")
    return subject if context is None else within(str(context), subject)


def listed(*, deleted: bool, deleted_only: bool) -> Listed:
    if deleted_only:
        return Listed.DELETED
    return Listed.ALL if deleted else Listed.PRESENT


def short_page(versions: Sequence[Version], offset: int, limit: int) -> Sequence[Version]:
    """A part of a list of schemas. It ends where they become too many or too large for one answer;
    the next one goes on behind those that this one has, and an empty one is the end.
    """
    found = page(versions, offset, limit, MAX_LISTED_SCHEMAS)
    size_bytes = 0
    for count, version in enumerate(found):
        size_bytes += version.content.size_bytes
        if count and size_bytes > MAX_LISTED_BYTES:
            return found[:count]
    return found


def page(items: Sequence[T], offset: int, limit: int, largest: int | None = None) -> Sequence[T]:
    """A part of a list. What is no sensible limit is the largest."""
    if limit <= 0 or (largest is not None and limit > largest):
        count = len(items) if largest is None else largest
    else:
        count = limit
    start = max(offset, 0)
    return items[start : start + count]
