"""The loop of `publish`: lines come in, records go out, their places are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from duolog import output
from duolog.cli.lines import bunches
from duolog.cli.sequences import Sent
from duolog.errors import Conflict, DuologError, InvalidRequest, NotFound, WriterFault

if TYPE_CHECKING:
    from io import BufferedReader

_REFUSED = (InvalidRequest, NotFound, Conflict, WriterFault)
"""Nothing was written, because of what was sent."""


class Line(NamedTuple):
    """What a line of the input holds."""

    number: int  # from 1
    content: Any


class Sender(Protocol):
    """Takes lines, one group after the other. A group is sent as a whole or not at all."""

    def parse(self, line: bytes) -> Any:
        """What the line holds; None for an empty one that says nothing."""

    def groups(self, lines: list[Line]) -> Iterable[list[Line]]:
        """The lines, in order, as they can be sent together."""

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        """Where they lie; durable. What raises InvalidRequest and the like has written nothing."""

    def finish(self) -> int:
        """No more lines come: how many records were passed over as sent before."""


class Counts(NamedTuple):
    """How many lines came in, and how many records are there for them."""

    lines: int
    records: int


def publish_lines(sender: Sender, longest_line_bytes: int) -> Counts:
    """Publish stdin. A bad line is named and ends it, when those before it are published."""
    number = records = 0
    for bunch in bunches(
        cast("BufferedReader", sys.stdin.buffer), longest_line_bytes=longest_line_bytes
    ):
        lines: list[Line] = []
        bad: DuologError | None = None
        for text in bunch:
            number += 1
            try:
                content = sender.parse(text)
            except DuologError as error:
                bad = _named(error, number, number)
                break
            if content is not None:
                lines.append(Line(number, content))
        for group in sender.groups(lines):
            records += _send(sender, group)
        if bad is not None:
            raise bad
    return Counts(number, records)


def _send(sender: Sender, lines: list[Line]) -> int:
    """Send some lines and print where they lie; those before a bad one, if there is one."""
    try:
        sent = sender.send(lines)
    except _REFUSED as error:
        if len(lines) == 1:
            raise _named(error, lines[0].number, lines[0].number) from None
        half = len(lines) // 2
        return _send(sender, lines[:half]) + _send(sender, lines[half:])
    except DuologError as error:
        raise _named(error, lines[0].number, lines[-1].number) from error
    output.json_lines(b"".join(map(_place, sent)))
    output.flush()
    return len(sent)


def _place(sent: Sent) -> bytes:
    placed, sequence = sent
    counted = b"" if sequence is None else b',"sequence":%d' % sequence
    return b'{"topic":"%b","partition":%d,"offset":%d%b}\n' % (
        placed.topic.encode(),  # no name of a topic has to be escaped
        placed.partition,
        placed.offset,
        counted,
    )


def _named(error: DuologError, first: int, last: int) -> DuologError:
    """The same error, with the lines that it is about."""
    lines = f"Line {first:,}" if first == last else f"Lines {first:,} to {last:,}"
    error.args = (f"{lines}: {error}",)
    return error
