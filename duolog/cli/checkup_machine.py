"""What `duolog doctor` looks at: ports that are listened on by default, and the clock."""

from __future__ import annotations

import ctypes
import errno
import resource
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from duolog.cli.checkup import Finding, Status

_FEW_FILES = 4096
_UNSYNCHRONISED = 0x40
_FIRST_BELIEVABLE = datetime(2025, 1, 1, tzinfo=UTC)
_IN_THE_FUTURE_MS = 60_000


def port(host: str, number: int, what: str) -> Finding:
    """Whether something could listen there."""
    named = f"{number} ({what})"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, number))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return Finding(
                "port",
                Status.WARNING,
                f"{named} is taken on {host}",
                "Something listens there, perhaps Duolog itself. Give another with "
                f"{'--listen' if what == 'serve' else '--port'}, or stop it.",
            )
        return Finding(
            "port",
            Status.WARNING,
            f"{named} cannot be had on {host}: {error.strerror}",
            "Ports below 1024 take rights; addresses have to be this machine's.",
        )
    return Finding("port", Status.OK, f"{named} is free on {host}")


def open_files(limits: tuple[int, int] | None = None) -> Finding:
    """How many files a process may have open: a log, its clients and its parts take from them."""
    from duolog.log.open_files import files_within, tables_within

    soft, hard = limits or resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files_within(soft, hard)
    shown = "any number" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    found = f"{most:,} of {shown}; a log keeps up to {tables_within(most):,} of its tables open"
    if most < _FEW_FILES:
        return Finding(
            "open files",
            Status.WARNING,
            found,
            "Few: a host's clients and a large log have to share them. Raise the hard limit "
            "(`ulimit -Hn`, LimitNOFILE= of systemd, --ulimit nofile= of Docker).",
        )
    return Finding("open files", Status.OK, found)


class _Timex(ctypes.Structure):
    """The beginning of Linux' struct timex; the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def kernel_says_synchronised() -> bool | None:
    """What the kernel was told by whoever keeps its clock; None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    try:
        asked = _Timex()
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked)) < 0:
            return None
    except (OSError, AttributeError):
        return None
    return not asked.status & _UNSYNCHRONISED


def clock(
    now: Callable[[], float] = time.time,
    is_synchronised: Callable[[], bool | None] = kernel_says_synchronised,
) -> Finding:
    """Records get its time where they bring none; tokens, certificates and retention go by it."""
    seconds = now()
    found = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if seconds < _FIRST_BELIEVABLE.timestamp():
        return Finding("clock", Status.ERROR, found, "That is past. Set it, and keep it by NTP.")
    if is_synchronised() is False:
        return Finding(
            "clock",
            Status.WARNING,
            f"{found}, kept by nobody",
            "Records without a time get this one. Keep it by NTP (chrony, systemd-timesyncd).",
        )
    return Finding("clock", Status.OK, found)


def latest_record(last_ts_ms: int, now_ms: int) -> Finding | None:
    """Whether a record comes from the future, by this clock; None when none does. Pure."""
    ahead_ms = last_ts_ms - now_ms
    if ahead_ms <= _IN_THE_FUTURE_MS:
        return None
    return Finding(
        "times",
        Status.WARNING,
        f"the latest record is {ahead_ms / 1000:,.0f} s ahead of this clock",
        "Somebody's clock is wrong. Retention keeps such records longer, and a Kafka topic with "
        "message.timestamp.after.max.ms may refuse them.",
    )
