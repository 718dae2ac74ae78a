"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

_LIBRARIES = ("duolog", "rocksdict", "pyarrow", "numpy")


def machine() -> dict[str, str]:
    """The machine and the versions of what runs on it."""
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{round(psutil.virtual_memory().total / 2**30)} GiB",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cpu_model() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or sys.platform
