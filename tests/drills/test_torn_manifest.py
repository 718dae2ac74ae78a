"""A MANIFEST whose end was torn by a power loss is cut; one that rots is not cut at others' cost.

Torn: at each record that RocksDB writes into its MANIFEST, the power fails before the sync, and
some bytes of the record are not there. The log opens, and all that was acknowledged is there.

Rotten: a byte of each record of a MANIFEST is changed, one after the other. The log is refused by
name and nothing of it is changed, or it opens and all that was acknowledged is there.

Through lives: so it is after restarts, flushes of single families, files that were handed over, and
with write-ahead logs that have gone; and what follows the last record never keeps a log closed.

Mutants: torn_manifests_stay, manifests_cut_untried, logs_need_not_join.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from duolog.errors import DamagedLog
from duolog.log import manifest, record_files, torn_manifest
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.manifest import manifest_path
from duolog.log.model import Record, TopicSettings
from duolog.log.options import LogOptions
from tests.drills.courts import Court, Verdict
from tests.drills.ledger import KINDS, write_ledger
from tests.drills.test_power_loss import Run, run_followed
from tests.support.disk import Disk
from tests.support.journal import Event, Kind
from tests.support.records import STREAM, part_of

_MOST_RUNS = 5  # of a mutant
_MOST_COPIES = 50


def manifest_writes(run: Run) -> Iterator[tuple[int, str, Event]]:
    """How many events had happened with each write to a MANIFEST, its path, and the write."""
    opened: dict[int, str] = {}
    for at, event in enumerate(run.events):
        if event.kind is Kind.OPENED:
            opened[event.handle] = event.path
        elif event.kind is Kind.WRITTEN and "/MANIFEST-" in opened.get(event.handle, ""):
            yield at + 1, str(Path(opened[event.handle]).relative_to(run.watched)), event


class Replay:
    """The disk and the ledger at moments of a run, one after the other."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.image = folder / "image"
        self.ledger = folder / "acknowledged"
        self.ledger.write_bytes(b"")
        self._run = run
        self._disk = Disk()
        self._followed = self._noted = 0

    def go_to(self, moment: int) -> dict[str, bytes]:
        """All files as a process reads them then."""
        self._disk.follow(self._run.events[self._followed : moment])
        self._followed = moment
        told = [json.loads(note) for note in self._disk.notes[self._noted :]]
        self._noted = len(self._disk.notes)
        write_ledger(self.ledger, [one for one in told if one[0] in KINDS])
        return self._disk.current()

    def make(self, files: dict[str, bytes]) -> Path:
        """The log's folder with these files."""
        for name, content in files.items():
            path = self.image / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.image / "log"

    def remove(self) -> None:
        shutil.rmtree(self.image)


def torn(content: bytes, write: Event, chance: random.Random) -> bytes:
    """The file without some bytes of its last write, which were zero before."""
    low = write.number + chance.randrange(len(write.first))
    high = chance.randint(low + 1, write.number + len(write.first))
    return content[:low] + bytes(high - low) + content[high:]


def tear(run: Run, folder: Path, court: Court, chance: random.Random) -> list[str]:
    """Lose power at each record of a MANIFEST; what was wrong afterwards."""
    replay = Replay(run, folder)
    wrong = []
    for moment, path, write in manifest_writes(run):
        files = replay.go_to(moment)
        log = replay.make({**files, path: torn(files[path], write, chance)})
        verdict = court.verdict(log, replay.ledger, go_on=True)
        wrong += [f"at event {moment}: {one}" for one in verdict.wrong_unless_whole()]
        replay.remove()
    return wrong


def rot(
    run: Run, folder: Path, court: Court, chance: random.Random, moments: int
) -> tuple[list[str], int]:
    """Change a byte of each record of a MANIFEST, at moments of a run; how many logs were refused,
    and what is wrong with the others.
    """
    replay = Replay(run, folder)
    writes = [moment for moment, _, _ in manifest_writes(run)]
    wrong, refused = [], 0
    for moment in [*sorted(chance.sample(writes, moments - 1)), len(run.events)]:
        log = replay.make(replay.go_to(moment))
        if not (log / "db" / "CURRENT").exists():
            replay.remove()
            continue
        sound = manifest_path(log / "db")
        content = sound.read_bytes()
        for begin, end in itertools.pairwise(_record_ends(content)):
            at = chance.randrange(begin, end)
            what = f"at event {moment}, byte {at} of {len(content)}"
            copy = folder / "rotten"
            shutil.copytree(log, copy)
            manifest_path(copy / "db").write_bytes(_flipped(content, at, chance))
            before = _tables_and_manifest(copy)
            verdict = court.verdict(copy, replay.ledger)
            if _is_refused(verdict):
                refused += 1
                if _tables_and_manifest(copy) != before:
                    wrong.append(f"{what}: refused and changed")
            else:
                wrong += [f"{what}: {one}" for one in verdict.wrong_unless_whole()]
            shutil.rmtree(copy)
        replay.remove()
    return wrong, refused


def _flipped(content: bytes, at: int, chance: random.Random) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _record_ends(content: bytes) -> list[int]:
    return [0, *(record.end for record in manifest._records(content))]


def _is_refused(verdict: Verdict) -> bool:
    return verdict.refused == "DamagedLog"


def _tables_and_manifest(log: Path) -> dict[str, bytes]:
    db = log / "db"
    files = [*db.glob("*.sst"), *db.glob("*.log"), manifest_path(db)]
    return {path.name: path.read_bytes() for path in files}


def followed(folder: Path, chance: random.Random, mutant: str | None = None) -> Run:
    run = run_followed(folder, str(chance.random()), small_buffers=True, mutant=mutant)
    assert run.violations == []
    return run


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("runs", [1, pytest.param(60, marks=pytest.mark.full)])
def test_a_manifest_that_a_power_loss_has_torn_is_cut(
    tmp_path: Path, chance: random.Random, court: Court, runs: int
) -> None:
    for number in range(runs):
        folder = tmp_path / f"run{number}"
        assert tear(followed(folder, chance), folder, court, chance) == []
        shutil.rmtree(folder)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("runs", "moments"), [(1, 2), pytest.param(10, 20, marks=pytest.mark.full)]
)
def test_a_rotten_manifest_is_refused_unless_nothing_is_missing(
    tmp_path: Path, chance: random.Random, court: Court, runs: int, moments: int
) -> None:
    for number in range(runs):
        folder = tmp_path / f"run{number}"
        wrong, refused = rot(followed(folder, chance), folder, court, chance, moments)
        assert wrong == []
        assert refused
        shutil.rmtree(folder)


def through_lives(folder: Path, chance: random.Random, lives: int) -> tuple[list[str], int]:
    """Open and close a log so often, and change its MANIFEST in between: what is wrong, and how
    often it was refused.
    """
    log = folder / "log"
    life = Life(log)
    wrong, refused = [], 0
    for number in range(lives):
        life.live(chance, folder / "live")
        for base in (folder / "live", log):
            for what, content, is_tail in _changed(manifest_path(base / "db").read_bytes(), chance):
                copy = folder / "changed"
                shutil.copytree(base, copy)
                manifest_path(copy / "db").write_bytes(content)
                try:
                    found = life.wrong_in(copy)
                except DamagedLog as error:
                    found = str(error) if is_tail else None
                    refused += 1
                if found is not None:
                    wrong.append(f"life {number}, {base.name}, {what}: {found}")
                shutil.rmtree(copy)
        shutil.rmtree(folder / "live")
    return wrong, refused


def _changed(content: bytes, chance: random.Random) -> Iterator[tuple[str, bytes, bool]]:
    """A MANIFEST in which a byte is another one, or the end is zero; or that goes on with noise."""
    records = list(itertools.pairwise(_record_ends(content)))
    for begin, end in chance.sample(records, min(5, len(records))):
        at = chance.choice((begin + 4, begin + 5, begin + 6, chance.randrange(begin, end)))
        yield f"byte {at} of {len(content)}", _flipped(content, at, chance), False
        yield f"zero from byte {begin}", content[:begin].ljust(len(content), b"\0"), False
    yield "noise behind", content + chance.randbytes(chance.randint(1, 60)), True
    yield "zeros behind", content + bytes(9), True


class Life:
    """A log that is opened and closed, and what was acknowledged of it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._values: list[bytes] = []
        self._groups: dict[str, int] = {}
        self._epoch = -1
        with self._open(log) as opened:
            opened.create_topic("orders", TopicSettings(partitions=1))

    def live(self, chance: random.Random, copy: Path) -> None:
        """Do some things, and leave a copy as a power loss would find it."""
        with self._open(self._log) as log:
            for _ in range(chance.randint(1, 8)):
                chance.choice((self._publish, self._ack, self._append, self._flush))(log, chance)
            for _ in range(_MOST_COPIES):
                if self._copied(copy):
                    return
        pytest.fail(f"{_MOST_COPIES} copies of a log in use were not whole")

    def _copied(self, copy: Path) -> bool:
        """Copy the log while it is open, unless RocksDB removes files meanwhile."""
        looked_at = copy.with_name("looked at")
        try:
            shutil.copytree(self._log, copy)
            shutil.copytree(copy, looked_at)
            if self.wrong_in(looked_at) is None:
                return True
        except (shutil.Error, FileNotFoundError, DamagedLog):
            pass
        finally:
            shutil.rmtree(looked_at, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)
        return False

    def wrong_in(self, folder: Path) -> str | None:
        """What is not as it was acknowledged. Raises DamagedLog."""
        with self._open(folder) as log:
            log.check_whole()
            values = [record.value for record in log.fetch("orders", 0, 0)]
            groups = {each.group: each.position for each in log.group_positions()}
            last = log.last_epoch(STREAM)
        epoch = -1 if last is None else last.epoch
        if (values, groups, epoch) == (self._values, self._groups, self._epoch):
            return None
        return f"{len(values)} of {len(self._values)} records, groups {groups}, epoch {epoch}"

    def _open(self, folder: Path) -> EmbeddedLog:
        return open_log(folder, options=LogOptions(min_free_bytes=0))

    def _publish(self, log: EmbeddedLog, chance: random.Random) -> None:
        value = b"%d" % len(self._values) + bytes(chance.choice((1, 3000)))
        log.publish("orders", Record(value))
        self._values.append(value)

    def _ack(self, log: EmbeddedLog, chance: random.Random) -> None:
        if self._values:
            group, upto = f"g{chance.randrange(5)}", chance.randrange(len(self._values))
            log.ack(group, "orders", upto, 0)
            self._groups[group] = max(self._groups.get(group, 0), upto + 1)

    def _append(self, log: EmbeddedLog, _: random.Random) -> None:
        self._epoch += 1
        rows = [b"e%d-%d" % (self._epoch, row) + bytes(2000) for row in range(5)]
        log.append(STREAM, self._epoch, [part_of(log.topic("orders"), {0: rows})])
        self._values += rows

    def _flush(self, log: EmbeddedLog, chance: random.Random) -> None:
        families = ("groups", "heads", "topics", "records", "times", "meta", "epochs")
        for family in chance.sample(families, chance.choice((1, 2, 7))):
            log._state.store._families[family].flush()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lives", [5, pytest.param(300, marks=pytest.mark.full)])
def test_no_life_of_a_log_makes_a_changed_manifest_lose_anything(
    tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    monkeypatch.setattr(record_files, "SHARE_BYTES", 100)
    wrong, refused = through_lives(tmp_path, chance, lives)
    assert wrong == []
    assert refused


def test_lives_find_the_mutant(
    tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torn_manifest, "_has_logs", lambda *_: True)  # logs_need_not_join
    for number in range(_MOST_RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        if through_lives(folder, chance, 6)[0]:
            return
    pytest.fail(f"{_MOST_RUNS} runs did not find it")


def test_tears_find_the_mutant(tmp_path: Path, chance: random.Random) -> None:
    with Court("torn_manifests_stay") as court:
        assert tear(followed(tmp_path, chance), tmp_path, court, chance)


def test_rot_finds_the_mutant(tmp_path: Path, chance: random.Random) -> None:
    with Court("manifests_cut_untried") as court:
        for number in range(_MOST_RUNS):
            folder = tmp_path / f"run{number}"
            if rot(followed(folder, chance), folder, court, chance, 2)[0]:
                return
    pytest.fail(f"{_MOST_RUNS} runs did not find it")
