"""The host is killed with -9, again and again, while a sink and publishers write through it.

Killed at any moment, and at chosen ones: when parts are uploaded and their append has not come,
inside the append, and between the commit and its answer. The sink lives on, asks the next host, and
sends again what nobody answered. After each kill the log is judged: nothing is lost or doubled,
epochs are whole and in order, records lie where it was said.

Mutants: epochs_unchecked, sequences_forgotten, staging_cleared.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import pytest

from duolog.log.embedded import EmbeddedLog
from duolog.reach.remote import RemoteLog
from tests.drills.courts import Court
from tests.drills.host import worker
from tests.drills.host.hosting import PART_RECEIVED
from tests.drills.ledger import write_ledger
from tests.support.children import Child, ChildFailed

_ANY = "any"
_POINTS = (
    "append.committed",
    "append.verified",
    "publish.synced",
    "append.records_written",
    "publish.written",
)
_MOMENTS = (_ANY, *_POINTS, _ANY)
_LINES_BEFORE_A_KILL = 60
_LONGEST_WAIT_SECONDS = 0.03
_LIVES_OF_A_LOG = 25
_LOOK_EVERY_SECONDS = 0.1


class Scene:
    """One log, the host that it has now, and a sink that writes through whichever that is."""

    def __init__(
        self,
        folder: Path,
        court: Court,
        chance: random.Random,
        *,
        by_url: bool = False,
        anew: bool = False,
        mutant: str | None = None,
    ) -> None:
        folder.mkdir()
        self._log, self._ledger = folder / "log", folder / "ledger"
        self._ledger.touch()
        self._court = court
        self._chance = chance
        self._mutant = mutant
        self._by_url = by_url
        self._listen = f"127.0.0.1:{_free_port(chance) if by_url else 0}"
        self._anew = anew
        self._pings = 0
        self._way = ""
        self._heard: list[Any] = []
        self._ending = ExitStack()
        self._hosting = self._ending.enter_context(ExitStack())
        self.wrong: list[str] = []

    def start_host(self, die_at: str | None = None) -> None:
        """At a place of its own choice each time, where the sink can find that out."""
        arguments: dict[str, Any] = {
            "role": "host",
            "folder": str(self._log),
            "listen": self._listen,
            "mutant": self._mutant,
        }
        if die_at is not None:
            arguments["die_at"] = (die_at, self._chance.randint(1, 3))
        self.host = self._hosting.enter_context(Child(worker.__name__, arguments))
        try:
            has_started = self.host.said()[0] == "started"
        except ChildFailed:
            if die_at is None or self.host.errors():
                raise
            return  # it has died already: a sink that was there asked it before it could say so
        if not has_started:
            self.wrong.append(f"the host did not start: {self.host.errors()}")

    def start_sink(self) -> None:
        where = {"url": f"http://{self._listen}"} if self._by_url else {"folder": str(self._log)}
        arguments = {
            "role": "sink",
            "seed": str(self._chance.random()),
            "anew": self._anew,
            **where,
        }
        self.sink = self._ending.enter_context(Child(worker.__name__, arguments))

    def hear(self, lines: int, *, way: str | None = None) -> None:
        """Wait for so many answers that the sink gets; with a way, only for those by that way."""
        while lines > 0:
            said = self.sink.said()
            self._take(said)
            is_answer = said[0] in {"published", "appended", "acked"}
            lines -= is_answer and way in {None, self._way}

    def hear_for(self, seconds: float) -> None:
        for said in self.sink.until_silent(seconds):
            self._take(said)

    def hear_from_all(self) -> None:
        """Wait until the stream and every publisher has got an answer."""
        missing = {"append", "ada", "bob", "cleo", *(["dora"] if self._by_url else [])}
        while missing:
            said = self.sink.said()
            self._take(said)
            missing.discard("append" if said[0] == "appended" else said[1])

    def kill_host(self) -> None:
        self.host.kill()
        self.end_of_host()

    def end_of_host(self) -> None:
        """Wait for its death, and for all that it has answered before."""
        while self.host.running and self.sink.running:
            self.hear_for(_LOOK_EVERY_SECONDS)
        if not self.sink.running:
            self.wrong.append(f"the sink gave up: {self.sink.errors()}")
            self.host.kill()
        self.host.wait()
        self._hosting.close()
        if self.wrong:
            return
        self._pings += 1
        self.sink.tell(self._pings)
        while (said := self.sink.said()) != ["pong", self._pings]:
            self._take(said)

    def kill_sink(self) -> None:
        self.sink.kill()
        for said in self.sink.rest():
            self._take(said)

    def judge(self) -> None:
        """Nobody may have the log meanwhile; who wants it keeps trying."""
        write_ledger(self._ledger, self._heard)
        self._heard.clear()
        self.wrong += self._court.verdict(self._log, self._ledger).wrong_unless_whole()

    def close(self) -> None:
        self._ending.close()

    def _take(self, said: Any) -> None:
        if said[0] == "violations":
            self.wrong += said[1]
        elif said[0] == "way":
            self._way = said[1]
        self._heard.append(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def killed_again_and_again(
    folder: Path,
    court: Court,
    chance: random.Random,
    moments: Sequence[str],
    *,
    by_url: bool,
    mutant: str | None = None,
) -> list[str]:
    """Kill the host at each of these moments; what was found wrong, with the kill before it."""
    for first in range(0, len(moments), _LIVES_OF_A_LOG):
        lives = moments[first : first + _LIVES_OF_A_LOG]
        with Scene(folder / f"{first}", court, chance, by_url=by_url, mutant=mutant) as scene:
            for number, moment in enumerate(lives, first + 1):
                scene.start_host(None if moment == _ANY else moment)
                if number == first + 1:
                    scene.start_sink()
                if moment == _ANY:
                    scene.hear(chance.randint(1, _LINES_BEFORE_A_KILL))
                    scene.hear_for(chance.random() * _LONGEST_WAIT_SECONDS)
                    scene.host.kill()
                scene.end_of_host()
                if not scene.wrong:
                    scene.judge()
                if scene.wrong:
                    return [f"after kill {number}, at {moment}: {one}" for one in scene.wrong]
            scene.start_host()
            scene.hear_from_all()
            scene.kill_host()
            scene.judge()
            if scene.wrong:
                return [f"at the end: {one}" for one in scene.wrong]
    return []


def _free_port(chance: random.Random) -> int:
    """One that stays free between two hosts: the system gives out those above by itself."""
    while True:
        port = chance.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _many(chance: random.Random, kills: int, *more: str) -> list[str]:
    moments = [*(_MOMENTS * kills)[: kills - kills // 10 * len(more)], *more * (kills // 10)]
    chance.shuffle(moments)
    return moments


@pytest.mark.parametrize("by_url", [False, True], ids=["same-machine", "url"])
def test_nothing_is_lost_or_doubled_by_kills(
    tmp_path: Path, court: Court, chance: random.Random, by_url: bool
) -> None:
    moments = ["append.committed", PART_RECEIVED]
    if not by_url:
        moments = ["append.records_written", _ANY, "append.committed"]
    assert killed_again_and_again(tmp_path, court, chance, moments, by_url=by_url) == []


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("by_url", [False, True], ids=["same-machine", "url"])
def test_nothing_is_lost_or_doubled_by_a_hundred_kills(
    tmp_path: Path, court: Court, chance: random.Random, by_url: bool
) -> None:
    moments = _many(chance, 100, *([PART_RECEIVED] if by_url else []))
    assert killed_again_and_again(tmp_path, court, chance, moments, by_url=by_url) == []


@pytest.mark.parametrize(
    ("mutant", "moment"),
    [
        ("epochs_unchecked", "append.committed"),
        ("sequences_forgotten", "publish.synced"),
        ("staging_cleared", "append.verified"),
    ],
)
def test_kills_find_the_mutant(
    tmp_path: Path, court: Court, chance: random.Random, mutant: str, moment: str
) -> None:
    moments = [moment] * 12
    assert killed_again_and_again(tmp_path, court, chance, moments, by_url=False, mutant=mutant)


def in_turns(folder: Path, court: Court, chance: random.Random, deaths: int) -> list[str]:
    """The host dies, the sink goes on by itself, a host comes back, and so on."""
    with Scene(folder / "turns", court, chance, anew=True) as scene:
        for number in range(deaths):
            scene.start_host(chance.choice(_POINTS))
            if number == 0:
                scene.start_sink()
            scene.end_of_host()
            scene.hear(30, way=EmbeddedLog.__name__)
        scene.start_host()
        scene.hear(30, way=RemoteLog.__name__)
        scene.kill_host()
        scene.kill_sink()
        scene.judge()
        return scene.wrong


@pytest.mark.parametrize(
    "deaths", [1, pytest.param(30, marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
)
def test_a_sink_goes_on_by_itself_where_its_host_has_died(
    tmp_path: Path, court: Court, chance: random.Random, deaths: int
) -> None:
    assert in_turns(tmp_path, court, chance, deaths) == []
