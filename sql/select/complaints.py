"""What DataFusion says when it refuses or fails, as our own errors that point at the word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duolog.errors import DuologError, InvalidSql, QueryFailed, QueryTooLarge
from duolog.sql.words import split

if TYPE_CHECKING:
    from duolog.sql.select.taken import Taken
    from duolog.sql.statements import Select

_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")
_PARSER = re.compile(r'ParserError\("(.*)"\)', re.DOTALL)
_NAMED = re.compile(r"(?:No field named|Invalid function|table function) ['\"]*([\w.\"]*[\w\"])")
_PREFIXES = re.compile(
    r"^(?:DataFusion error: |Error during planning: |SQL error: |Schema error: |Arrow error: "
    r"|Execution error: |Compute error: |External error: |This feature is not implemented: "
    r"|Internal error: |Optimizer rule '\w+' failed\s+caused by\s+|Cast error: |Parser error: "
    r"|Invalid argument error: |type_coercion\s+caused by\s+)+"
)
_BUG_REPORT = "\nThis issue was likely caused by a bug in DataFusion"
_READ_ONLY = re.compile(r"(?:DDL|DML|Statement) not supported|(?:DELETE|INSERT|UPDATE|MERGE) ")


def refused(error: BaseException, query: Select, taken: Taken, text: str) -> InvalidSql:
    """DataFusion does not take the query. `text` is all that was sent."""
    said = str(error).split(_BUG_REPORT)[0]
    if _READ_ONLY.search(said):
        return InvalidSql(
            "A SELECT only reads: it cannot write, define or set anything.",
            text=text,
            position=query.position,
        )
    place = _place_of_line(said, taken, query) or _place_of_name(said, query)
    reason = _PARSER.sub(r"\1", _PLACE.sub("", said))
    reason = _PREFIXES.sub("", reason).replace('\\"', '"').replace("'duolog.public.", "'")
    position = query.position if place is None else query.position + place
    return InvalidSql(_sentence(reason), text=text, position=position)


def failed(error: BaseException, memory_bytes: int) -> DuologError:
    """The query was begun, and could not go on."""
    said = str(error).split(_BUG_REPORT)[0]
    if "Resources exhausted" in said or "Memory Exhausted" in said:
        return QueryTooLarge(
            f"The query needs more than the {memory_bytes >> 20} MiB of memory it may have: "
            "select fewer rows or columns before it sorts, joins or groups, or add a LIMIT."
        )
    return QueryFailed(f"The query failed while it ran: {_sentence(_PREFIXES.sub('', said))}")


def _sentence(reason: str) -> str:
    lines = [line.strip().rstrip(".:") for line in reason.splitlines()]
    text = " ".join(line if line.endswith(("?", "!")) else f"{line}." for line in lines if line)
    return text or "DataFusion gives no reason."


def _place_of_line(said: str, taken: Taken, query: Select) -> int | None:
    found = _PLACE.search(said)
    if found is None:
        return len(query.text) if "EOF" in said else None
    return taken.typed_position(int(found[1]), int(found[2]))


def _place_of_name(said: str, query: Select) -> int | None:
    """Where a name stands that the message speaks of."""
    for name in _NAMED.findall(said):
        wanted = name.replace('"', "").rpartition(".")[2].lower()
        for word in split(query.text)[0]:
            if word.kind in ("name", "quoted") and word.text.lower() == wanted:
                return word.position
    return None
