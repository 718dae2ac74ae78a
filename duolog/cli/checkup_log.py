"""What `duolog doctor` looks at: one log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from duolog.cli import shown
from duolog.cli.checkup import Finding, Status
from duolog.cli.checkup_machine import latest_record
from duolog.errors import DuologError, LogBusy, LogNotFound
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import Topic
from duolog.log.owner import open_to_others

_LOCK_WAIT_SECONDS = 1.0


def log(folder: Path, options: LogOptions) -> Iterator[Finding]:
    """Whether it can be owned and opened, is whole as far as a quick look tells, and what it holds.

    Opening checks the format, and that everything that was durable once is there.
    """
    options = replace(options, lock_wait_seconds=min(options.lock_wait_seconds, _LOCK_WAIT_SECONDS))
    try:
        opened = open_log(folder, create=False, options=options)
    except LogBusy as error:
        yield Finding(
            "log",
            Status.WARNING,
            f"in use: {error}",
            "A log that is in use cannot be looked into from here.",
        )
        yield from _exposed(folder)
        return
    except LogNotFound:
        yield Finding(
            "log",
            Status.WARNING,
            f"none in {folder} yet",
            "`duolog topic create NAME` makes one there.",
        )
        return
    except DuologError as error:
        yield Finding("log", Status.ERROR, f"{error.code}: {error}")
        return
    with opened:
        yield Finding("log", Status.OK, f"opens; all that was durable is there ({folder})")
        yield from _exposed(folder)
        yield _identity(opened)
        yield _ends(opened)
        latest = [each.last_ts_ms for topic in opened.topics() for each in opened.offsets(topic.id)]
        ahead = latest_record(max(latest, default=0), options.clock.now_ms())
        if ahead is not None:
            yield ahead


def topics_of(folder: Path, options: LogOptions) -> tuple[Topic, ...]:
    """The log's topics, wherever it is asked; none where it cannot be."""
    from duolog.reach import reach

    try:
        with reach(folder, options=options) as opened:
            return tuple(opened.topics())
    except DuologError:
        return ()


def _exposed(folder: Path) -> Iterator[Finding]:
    exposed = open_to_others(folder)
    if exposed is not None:
        yield Finding("folder", Status.WARNING, exposed.found, exposed.advice)


def _identity(opened: EmbeddedLog) -> Finding:
    identity = opened.identity
    if identity.copied_from is not None:
        return Finding(
            "identity", Status.OK, f"{identity.log_id}, a copy of {identity.copied_from}"
        )
    return Finding(
        "identity",
        Status.OK,
        identity.log_id,
        "A clone of the whole disk would have the same: never run both.",
    )


def _ends(opened: EmbeddedLog) -> Finding:
    """Read the first and the last record of every partition."""
    topics = opened.topics()
    records = size = 0
    for topic in topics:
        for each in opened.offsets(topic.id):
            records += each.next_offset - each.start
            size += each.bytes
            if each.last_offset is None:
                continue
            try:
                for offset in (each.start, each.last_offset):
                    opened.fetch(topic.id, each.partition, offset, max_records=1)
            except DuologError as error:
                return Finding("records", Status.ERROR, f"{error.code}: {error}")
    return Finding(
        "records",
        Status.OK,
        f"{shown.things(records, 'record')} in {shown.things(len(topics), 'topic')}, "
        f"{shown.size(size)}; the ends of every partition are readable",
    )
