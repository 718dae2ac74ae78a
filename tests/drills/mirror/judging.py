"""The one judge of all drills of the mirror: is in Kafka what is in the log, once and in order?

Kafka is read by librdkafka in the order of reading, and nothing of the mirror is asked but where it
says that records lie. `duolog audit` reads both sides again, by its own ways, and has to agree.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from typer.testing import CliRunner

from duolog.bridge.kafka.audit import Finding
from duolog.cli.program import app
from duolog.errors import UnknownTopic
from duolog.log.access import LogAccess
from duolog.log.mirror_model import Run
from tests.support.mirror_runner import Read, read_all, read_log

FOREIGN = b"foreign"
"""How the values of somebody else's records begin in a drill."""

_GONE = Finding.MISSING_IN_KAFKA.value
_ASIDE = ".kafka-refused"
_FROM = "__connect.errors."

IsBad = Callable[[Read], bool]


def no_bad_ones(_: Read) -> bool:
    """Kafka takes every record of this drill."""
    return False


def violations(
    log: LogAccess,
    topic: str,
    bootstrap_servers: str,
    *,
    is_bad: IsBad = no_bad_ones,
    lacks_start: bool = False,
) -> list[str]:
    """All that is wrong with a topic's mirror when everything is said to be mirrored.

    Records that are bad may be in Kafka or have been set aside, but not both and not neither. Where
    Kafka `lacks_start`, it has deleted its oldest records by itself.
    """
    wrong = []
    aside = _set_aside(log, topic)
    if repeated := [place for place, times in aside.items() if times > 1]:
        wrong.append(f"{len(repeated)} records were set aside more than once, as {repeated[0]}")
    for offsets in log.offsets(topic):
        number = offsets.partition
        there = read_all(bootstrap_servers, topic, number)
        told = _places(log, topic, number)
        logged = read_log(log, topic, number)
        ours = [read for read in logged if (number, read.offset) not in aside]
        good = [read for read in logged if (number, read.offset) in aside and not is_bad(read)]
        if good:
            wrong.append(
                f"partition {number}: {len(good)} were set aside, as offset {good[0].offset}"
            )
        theirs = [read for read in there if not (read.value or b"").startswith(FOREIGN)]
        if lacks_start:
            ours = ours[max(0, len(ours) - len(theirs)) :]
        wrong += [f"partition {number}: {each}" for each in _differences(theirs, ours, told)]
    return wrong


def audit_says(
    folder: Path,
    topic: str,
    bootstrap_servers: str,
    *,
    groups: str = "none",
    lacks_start: bool = False,
) -> list[str]:
    """What `duolog audit` finds; nothing when its exit code says that all is equal.

    Where Kafka `lacks_start`, it may find that, and nothing else.
    """
    arguments = ["audit", "--log", str(folder), "--bootstrap-servers", bootstrap_servers]
    result = CliRunner().invoke(app, [*arguments, "--topic", topic, "--groups", groups, "--json"])
    if result.exit_code == 0:
        return []
    if result.exit_code == 1 and lacks_start:
        report = json.loads(result.stdout)
        found = {finding for each in report["partitions"] for finding in each["counts"]}
        if found == {_GONE} and all(each["equal"] for each in report["positions"]):
            return []
    return [f"duolog audit ended with {result.exit_code}: {result.output[:2000]}"]


def _differences(there: Sequence[Read], ours: Sequence[Read], runs: Sequence[Run]) -> Iterator[str]:
    alike = _alike(there, ours)
    if alike < max(len(there), len(ours)):
        doubled = len(there) - len(set(map(_content, there)))
        yield (
            f"{len(there)} records in Kafka ({doubled} doubled), {len(ours)} in the log; alike are "
            f"the first {alike}"
        )
        return
    at = 0
    for kafka, log in zip(there, ours, strict=True):
        while at < len(runs) and runs[at].next_log_offset <= log.offset:
            at += 1
        if at == len(runs) or log.offset + runs[at].difference != kafka.offset:
            run = runs[at] if at < len(runs) else None
            yield f"log offset {log.offset} lies at {kafka.offset} in Kafka, and not as in {run}"
            return


def _alike(there: Sequence[Read], ours: Sequence[Read]) -> int:
    pairs = enumerate(zip(there, ours, strict=False))
    differing = (n for n, (one, other) in pairs if _content(one) != _content(other))
    return next(differing, min(len(there), len(ours)))


def _content(read: Read) -> Read:
    return read._replace(offset=0)


def _places(log: LogAccess, topic: str, partition: int) -> Sequence[Run]:
    mirror = log.mirror(topic, partition)
    return () if mirror is None else mirror.runs


def _set_aside(log: LogAccess, topic: str) -> Counter[tuple[int, int]]:
    """Partition and offset of all records that Kafka was not given."""
    found: Counter[tuple[int, int]] = Counter()
    with suppress(UnknownTopic):
        for read in read_log(log, topic + _ASIDE):
            headers = dict(read.headers)
            place = (headers[f"{_FROM}{name}"] or b"" for name in ("partition", "offset"))
            partition, offset = map(int, place)
            found[partition, offset] += 1
    return found
