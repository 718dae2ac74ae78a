"""Random batches, damage, skips and limits: each reader gives what an oracle of lists gives."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import duolog
from duolog.bridge.http.stored_pages import fetch_stored
from duolog.errors import DamagedBatch
from duolog.log.access import LogAccess
from duolog.log.damage_model import LeftOut
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Record
from duolog.reach import reach
from tests.support.host_server import TOKEN, ManyHosts, host_app
from tests.support.poison import Poison, poison
from tests.support.records import STREAM, part_of

Read = Callable[[Any, int, int, int, bool], tuple[list[int], int, list[LeftOut]]]


def decoded(
    log: LogAccess, at: int, records: int, size: int, skip_damaged: bool
) -> tuple[list[int], int, list[LeftOut]]:
    page = log.fetch("t", 0, at, max_records=records, max_bytes=size, skip_damaged=skip_damaged)
    return [record.offset for record in page], page.next_offset, list(page.left_out)


def stored(
    log: LogAccess, at: int, records: int, size: int, skip_damaged: bool
) -> tuple[list[int], int, list[LeftOut]]:
    limits: Any = {"max_records": records, "max_bytes": size, "skip_damaged": skip_damaged}
    page = fetch_stored(log, log.topic("t").id, 0, at, **limits)
    found = [at for each in page.batches for at in range(each.base_offset, each.next_offset)]
    return found, page.next_offset, list(page.left_out)


def encoded(
    log: LogAccess, at: int, records: int, size: int, skip_damaged: bool
) -> tuple[list[int], int, list[LeftOut]]:
    page = log.fetch_encoded(
        "t", 0, at, max_records=records, max_bytes=size, skip_damaged=skip_damaged
    )
    left_out: list[LeftOut] = []
    found = [
        offset
        for batch in page.decode(skip_damaged=skip_damaged, passed_over=left_out.append)
        for offset in range(batch.base_offset, batch.next_offset)
    ]
    return found, page.next_offset, left_out


@pytest.mark.parametrize("seed", range(25))
def test_readers_agree_with_lists(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, duolog.open_log(Path(folder) / "log") as log:
        batches = written(log, chance)
        end = batches[-1].stop
        damaged = {each for each in batches if chance.random() < 0.4}
        for each in damaged:
            poison(log, "t", 0, each.start, chance.choice(list(Poison)))
        readable = {at for each in batches if each not in damaged for at in each}
        for read in (decoded, stored, encoded):
            agrees(log, read, chance, end, readable, skip_damaged=True)
            agrees(log, read, chance, end, readable, skip_damaged=False)
        skip_what_is_met(log, end)
        assert log.damage() == ()
        assert {
            at for hole in log.holes() for at in range(hole.first_offset, hole.next_offset)
        } == {at for each in damaged for at in each}
        for read in (decoded, stored, encoded):
            agrees(log, read, chance, end, readable, skip_damaged=False)
        assert log.check_whole().records == end


@pytest.fixture(scope="module")
def hosts() -> Iterator[ManyHosts]:
    hosts = ManyHosts()
    yield hosts
    hosts.stop()


@pytest.mark.parametrize("seed", range(15))
def test_readers_at_a_host_agree_with_lists(seed: int, hosts: ManyHosts, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with duolog.open_log(tmp_path / "log") as log:
        url = hosts.add(host_app(log))
        batches = written(log, chance)
        damaged = {each for each in batches if chance.random() < 0.4}
        for each in damaged:
            poison(log, "t", 0, each.start, chance.choice(list(Poison)))
        readable = {at for each in batches if each not in damaged for at in each}
        end = batches[-1].stop
        with reach(url=url, token=TOKEN) as remote:  # which keeps what it has read in part
            for _ in range(5):
                for read in (decoded, encoded):
                    agrees(remote, read, chance, end, readable, skip_damaged=chance.random() < 0.5)
            skip_what_is_met(remote, end)
            for _ in range(5):
                agrees(remote, decoded, chance, end, readable, skip_damaged=False)
            assert remote.damage() == ()
        hosts.remove(url)


def skip_what_is_met(log: LogAccess, end: int) -> None:
    """As the error says. Damaged neighbours may be one stretch, where one of them is missing."""
    at = 0
    while at < end:
        try:
            at = log.fetch("t", 0, at).next_offset
        except DamagedBatch as damage:
            log.skip_to("t", 0, damage.next_offset)


def written(log: EmbeddedLog, chance: random.Random) -> list[range]:
    """Batches of both kinds, of all sizes; nothing of them is in memory."""
    topic = log.create_topic("t")
    batches: list[range] = []
    at = 0
    for epoch in range(chance.randint(2, 12)):
        count = chance.choice([1, 2, 7, 40])
        values = [b"v" * chance.choice([1, 100, 3000]) for _ in range(count)]
        if chance.random() < 0.5:
            part = part_of(topic, {0: values}, target_bytes=1 << 30)
            log.append(STREAM, epoch, [part], begin_anywhere=True)
        else:
            log.publish("t", [Record(value) for value in values], writer="w", sequence=at)
            log.append(STREAM, epoch, [], begin_anywhere=True)
        batches.append(range(at, at + count))
        at += count
    for each in batches:
        log._state.cache.forget((topic.id, 0), each.start, each.start + 1)  # type: ignore[arg-type]
    return batches


def read_or_damage(
    read: Read, log: LogAccess, at: int, records: int, size: int, skip_damaged: bool
) -> tuple[list[int], int, list[LeftOut]] | DamagedBatch:
    try:
        return read(log, at, records, size, skip_damaged)
    except DamagedBatch as damage:
        return damage


def agrees(
    log: LogAccess,
    read: Read,
    chance: random.Random,
    end: int,
    readable: set[int],
    *,
    skip_damaged: bool,
) -> None:
    """Read from somewhere to the end, with limits that change; each step is judged."""
    at = chance.randrange(end)
    begin, found, passed = at, [], set[int]()
    while at < end:
        records, size = chance.choice([1, 3, 1000, 100_000]), chance.choice([1, 2000, 1 << 20])
        step = read_or_damage(read, log, at, records, size, skip_damaged)
        if isinstance(step, DamagedBatch):
            gone = range(step.first_offset, step.next_offset)
            assert not skip_damaged
            assert step.first_offset <= at or read is encoded
            assert not readable & set(gone)
            found += [each for each in range(at, step.first_offset) if each in readable]
            at = step.next_offset
            continue
        offsets, reached, left_out = step
        assert read is encoded or len(offsets) <= records
        assert reached > at
        assert all(at <= offset < reached for offset in offsets)
        passed |= {o for each in left_out for o in range(each.first_offset, each.next_offset)}
        found += offsets
        at = reached
    assert found == [offset for offset in range(begin, end) if offset in readable]
    assert not passed & readable
