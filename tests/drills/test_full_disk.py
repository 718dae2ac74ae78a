"""A small disk fills up: writes are refused by name, reads go on, and once there is space again the
same process writes on, with nothing lost and nothing doubled.

The disk is a small tmpfs in a mount namespace of its own, or, where that is not allowed, a quota of
the fault shim; the test prints which. Once with the guard that refuses before the disk is full, and
without it, so that RocksDB itself runs out of space.

Mutants: never_recovered, failures_settled.
"""

from __future__ import annotations

import random
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.drills import worker
from tests.support.children import Child, ChildFailed
from tests.support.shim import preloaded

_DISK_BYTES = 160 << 20
_MOUNT = f'mount -t tmpfs -o size={_DISK_BYTES} tmpfs "$0" && exec "$@"'


@lru_cache
def namespace() -> tuple[str, ...] | None:
    """The command that gives a process mounts of its own, if this machine allows one."""
    for command in (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount")):
        try:
            done = subprocess.run(
                [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            return None
        if done.returncode == 0:
            return command
    return None


def filled(
    folder: Path, chance: random.Random, *, guard: bool, mutant: str | None = None
) -> dict[str, Any]:
    """What the filling process says."""
    disk = folder / "disk"
    disk.mkdir()
    arguments = {
        "role": "fill",
        "mutant": mutant,
        "folder": str(disk),
        "seed": str(chance.random()),
        "min_free_bytes": (16 << 20) if guard else 0,
    }
    command = namespace()
    if command is not None:
        print("disk: a tmpfs of its own")
        arguments["quota_bytes"] = None
        before = [*command, "sh", "-ec", _MOUNT, str(disk)]
        return _told(Child(worker.__name__, arguments, before=before))
    print("disk: a quota of the fault shim")
    arguments.update(quota_bytes=_DISK_BYTES, min_free_bytes=0)
    return _told(Child(worker.__name__, arguments, environment=preloaded()))


def _told(filler: Child) -> dict[str, Any]:
    with filler as child:
        try:
            return dict(child.said())
        except ChildFailed as failed:
            return {"violations": [str(failed)], "refused": {}}


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("disks", [1, pytest.param(10, marks=pytest.mark.full)])
def test_a_full_disk_refuses_writes_and_loses_nothing(
    tmp_path: Path, chance: random.Random, guard: bool, disks: int
) -> None:
    for number in range(disks):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = filled(folder, chance, guard=guard)
        assert said["violations"] == []
        assert set(said["refused"]) <= {"DiskFull", "OutcomeUnknown", "NotWritten"}
        assert sum(said["refused"].values()) > 0


@pytest.mark.parametrize("mutant", ["never_recovered", "failures_settled"])
def test_a_full_disk_finds_the_mutant(tmp_path: Path, chance: random.Random, mutant: str) -> None:
    tries = [tmp_path / str(number) for number in range(8)]  # where the disk gets full is chance
    for folder in tries:
        folder.mkdir()
        if filled(folder, chance, guard=False, mutant=mutant)["violations"]:
            return
    pytest.fail(f"not found in {len(tries)} full disks")
