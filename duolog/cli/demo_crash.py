"""The demo's second half: a publisher is killed in the middle, and the log is looked at."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from duolog.cli.demo_routes import GROUP
from duolog.cli.story import Story
from duolog.log.model import GroupPosition, TopicSettings

if TYPE_CHECKING:
    from duolog.log import LogAccess

TOPIC = "readings"
_PARTITIONS = 2
_ENOUGH = 10_000  # acknowledged records, before it is killed
_DEADLINE_SECONDS = 15.0


class Killed(NamedTuple):
    """What a publisher had done when it was killed."""

    pid: int
    sent: int  # lines given to it, the last of which it may not have read
    places: list[tuple[int, int]]  # of the first lines, in their order: what it acknowledged
    exit_code: int


def kill_a_publisher(story: Story, folder: Path, positions: tuple[GroupPosition, ...]) -> None:
    from duolog.log import open_log

    story.step("kill -9 in the middle of publishing")
    with open_log(folder) as log:
        log.create_topic(TOPIC, TopicSettings(partitions=_PARTITIONS))
    killed = publish_until_killed(folder)
    acknowledged = len(killed.places)
    story.tell(f"`duolog publish {TOPIC}` is fed without a pause, and killed by its id.")
    story.check(
        f"Process {killed.pid} was killed with {acknowledged:,} of {killed.sent:,} records "
        "acknowledged",
        holds=killed.exit_code == -signal.SIGKILL and 0 < acknowledged < killed.sent,
    )
    began = time.perf_counter()
    with open_log(folder, create=False) as log:
        seconds = time.perf_counter() - began
        story.tell(f"The log was open again after {seconds * 1000:.0f} ms.")
        _look(story, log, killed)
        story.check(f"Group {GROUP} is where it was", holds=log.group_positions(GROUP) == positions)


def publish_until_killed(folder: Path) -> Killed:
    """Feed `duolog publish` until it has acknowledged enough, and kill it by its id."""
    command = [sys.executable, "-m", "duolog.cli", "publish", TOPIC, "--log", str(folder)]
    with subprocess.Popen(  # noqa: S603 - this program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        given, told = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        feeder = _Feeder(given)
        too_long = threading.Timer(_DEADLINE_SECONDS, child.kill)
        feeder.start()
        too_long.start()
        try:
            places = [_place(line) for line in itertools.islice(told, _ENOUGH)]
            child.kill()
            # What it had printed by then it had acknowledged; a line cut short it had not.
            places += [_place(line) for line in told if line.endswith(b"\n")]
            exit_code = child.wait()
        finally:
            child.kill()
            too_long.cancel()
            too_long.join()
            feeder.join()
    return Killed(child.pid, feeder.sent, places, exit_code)


def _place(line: bytes) -> tuple[int, int]:
    fields = json.loads(line)
    return fields["partition"], fields["offset"]


class _Feeder(threading.Thread):
    """Gives a publisher lines for as long as it takes them."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(name="duolog-demo-feeder")
        self._pipe = pipe
        self.sent = 0

    def run(self) -> None:
        with contextlib.suppress(BrokenPipeError), self._pipe:  # until it is killed
            for number in itertools.count():
                line = {"key": f"sensor-{number % 10}", "value": {"reading": number}}
                self.sent = number + 1
                self._pipe.write(json.dumps(line).encode() + b"\n")


def _look(story: Story, log: LogAccess, killed: Killed) -> None:
    readings = dict(_readings(log))
    there = sum(readings.get(place) == number for number, place in enumerate(killed.places))
    acknowledged = len(killed.places)
    story.check(
        f"All {acknowledged:,} acknowledged records are there, each at its place",
        holds=there == acknowledged,
    )
    gapless = all(
        (each.partition, offset) in readings
        for each in log.offsets(TOPIC)
        for offset in range(each.next_offset)
    )
    once = len(set(readings.values())) == len(readings)
    story.check("No offset is missing, and no record is there twice", holds=gapless and once)
    more = len(readings) - acknowledged
    story.check(
        f"{more:,} more were written but not yet acknowledged, without a hole before them"
        if more
        else "Nothing more was written",
        holds=sorted(readings.values()) == list(range(len(readings))),
    )


def _readings(log: LogAccess) -> Iterator[tuple[tuple[int, int], int]]:
    """All records' places and numbers."""
    for each in log.offsets(TOPIC):
        at = each.start
        while at < each.next_offset:
            page = log.fetch(TOPIC, each.partition, at)
            for record in page:
                yield (each.partition, record.offset), json.loads(record.value or b"")["reading"]
            at = page.next_offset
