"""The oldest line of PySpark that is promised to work, beside the one that Duolog is made with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from duolog.flock import locked
from duolog.jars.cache import cache_folder

VERSION = "3.5.7"
_INSTALL_SECONDS = 900


def older_spark_python() -> Path:
    """An interpreter with this PySpark and all else that the tests' own has; made once, kept."""
    folder = cache_folder() / f"tests-pyspark-{VERSION}-python-{sys.version_info[1]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock"), _INSTALL_SECONDS):
        done = folder / "installed"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder)
            done.touch()
    (site,) = folder.glob("lib/python*/site-packages")
    # What is installed here is found first; the rest comes from the tests' own environment.
    others = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (site / "others.pth").write_text(others)
    return folder / "bin" / "python"


def _install(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run(
        [*pip, "--disable-pip-version-check", f"pyspark=={VERSION}"],
        check=True,
        timeout=_INSTALL_SECONDS,
        env={**os.environ, "PYTHONWARNINGS": ""},
    )
