"""What `make dist` makes, and clean environments with it, as pip would give them to anybody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

from duolog.flock import locked

ROOT = Path(__file__).parents[2]
_BUILD_SECONDS = 300
_INSTALL_SECONDS = 600  # the first time it fetches; later it links from uv's cache
_RUN_SECONDS = 120
_OURS = ("DUOLOG", "PYTHON", "PYSPARK", "SPARK")


@dataclass(frozen=True)
class Distributions:
    """The files of a release."""

    folder: Path

    @property
    def wheel(self) -> Path:
        return self._only("duolog-*.whl")

    @property
    def sdist(self) -> Path:
        return self._only("duolog-*.tar.gz")

    @property
    def py_files(self) -> Path:
        """For `spark-submit --py-files`."""
        return self._only("duolog.zip")

    def _only(self, pattern: str) -> Path:
        (found,) = self.folder.glob(pattern)
        return found


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Made once, whichever process of a run asks first, and kept beside: dist/ is anybody's."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    kept = run / "distributions"
    (ROOT / "build").mkdir(exist_ok=True)
    with locked(ROOT / "build" / "dist.lock", _BUILD_SECONDS):
        if not kept.exists():
            made = subprocess.run(
                ["make", "dist"], cwd=ROOT, capture_output=True, text=True, check=False
            )
            assert made.returncode == 0, made.stdout + made.stderr
            copied = shutil.copytree(ROOT / "dist", run / "distributions.unfinished")
            copied.rename(kept)
    return Distributions(kept)


@dataclass(frozen=True)
class Installed:
    """An environment with what one requirement brings, and nothing of this tree on its path."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def duolog(self) -> Path:
        return self.folder / "bin" / "duolog"

    def _environment(self) -> dict[str, str]:
        """As in a shell where it is activated: Spark starts the python3 in PATH."""
        return {**_environment(), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def run(
        self, program: Path, *arguments: object, said: str | None = None, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of it in its own folder; anything but this exit code is a failure."""
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            cwd=self.folder,
            env=self._environment(),
            input=said or "",
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done

    def said_by(self, *arguments: object, said: str | None = None) -> str:
        """What `duolog` prints."""
        return self.run(self.duolog, *arguments, said=said).stdout

    def ran(self, code: str, *arguments: object) -> str:
        """What a few lines of Python print."""
        return self.run(self.python, "-c", code, *arguments).stdout

    @contextmanager
    def serving(self, *arguments: object) -> Iterator[dict[str, str]]:
        """A command that serves until it is told to end; gives what it says of itself in JSON."""
        with (self.folder / "served").open("w+") as said:
            process = subprocess.Popen(
                [str(self.duolog), *map(str, arguments), "--json"],
                cwd=self.folder,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
            with process:
                try:
                    assert process.stdout is not None
                    line = process.stdout.readline()
                    said.seek(0)
                    assert line, said.read()
                    yield json.loads(line)
                finally:
                    process.terminate()
                    code = process.wait(_RUN_SECONDS)
        assert code == 0


def install(folder: Path, distribution_file: Path, extra: str = "") -> Installed:
    """A new environment. PySpark, which is large, is that of the tests in all of them."""
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    _uv(uv, "venv", "--python", sys.executable, folder)
    linked = folder / "linked.txt"
    linked.write_text("pyspark ; sys_platform == 'none'\n")
    wanted = f"duolog{f'[{extra}]' if extra else ''} @ {distribution_file.as_uri()}"
    options = ("--link-mode", "symlink", "--overrides", linked)
    _uv(uv, "pip", "install", *options, "--python", folder / "bin/python", wanted)
    if extra in {"spark", "all"}:
        for name in ("pyspark", "py4j"):  # only now: uv would write through the links
            _link(name, folder)
    return Installed(folder)


def _uv(uv: Path, *arguments: object) -> None:
    done = subprocess.run(
        [str(uv), "--quiet", *map(str, arguments)],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _link(name: str, folder: Path) -> None:
    (site,) = folder.glob("lib/python*/site-packages")
    here = Path(sysconfig.get_path("purelib"))
    for top in {file.parts[0] for file in distribution(name).files or () if file.parts}:
        if top not in {"..", "__pycache__"}:
            (site / top).symlink_to(here / top)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
