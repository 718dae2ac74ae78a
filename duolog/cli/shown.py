"""Numbers, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def count(number: int) -> str:
    """12,345"""
    return f"{number:,}"


def things(number: int, word: str) -> str:
    """1 record, 12,345 records"""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def size(number: int) -> str:
    """1.2 MiB"""
    if number < 1024:
        return f"{number} B"
    amount = float(number)
    for unit in _UNITS:
        amount /= 1024
        if amount < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{amount:.1f} {unit}"


def moment(ts_ms: int) -> str:
    """2026-01-31 12:00:00, local time; empty for the beginning of time."""
    if not ts_ms:
        return ""
    try:
        return datetime.fromtimestamp(ts_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a record's time may be any number
        return f"@{ts_ms}"


def duration(seconds: float) -> str:
    """7 d, 1 h 30 min, 2.5 s"""
    parts = []
    rest = seconds
    for name, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if rest >= length:
            parts.append(f"{int(rest // length)} {name}")
            rest %= length
    if rest or not parts:
        parts.append(f"{rest:g} s")
    return " ".join(parts)
