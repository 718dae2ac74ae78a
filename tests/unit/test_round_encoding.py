"""Everything of a round is encoded before anything of it is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from duolog.log import EmbeddedLog, batch, open_log, rounds
from duolog.log.model import Record
from duolog.log.store import MAX_WRITE_BYTES

LARGE = [Record(bytes([at]) * (MAX_WRITE_BYTES // 3)) for at in range(9)]  # several writes
POISON = Record(b"poison")


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch, log: EmbeddedLog) -> list[Any]:
    """What the store was given, and no batch with a poison can be encoded."""
    given: list[Any] = []
    encode, write = batch.encode_small, log._state.store.write

    def failing(records: Sequence[Record], now_ms: int) -> Any:
        if POISON in records:
            raise ValueError("it cannot be encoded")
        return encode(records, now_ms)

    def counted(written: Any, *more: Any) -> None:
        given.append(written)
        write(written, *more)

    monkeypatch.setattr(rounds, "encode_small", failing)
    monkeypatch.setattr(log._state.store, "write", counted)
    return given


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with open_log(tmp_path / "log") as opened:
        opened.create_topic("orders")
        opened.create_topic("others")
        yield opened


def test_what_cannot_be_encoded_is_found_before_the_first_write(
    log: EmbeddedLog, writes: list[Any]
) -> None:
    with pytest.raises(ValueError, match="cannot be encoded"):
        log.publish("orders", [*LARGE, POISON])
    assert writes == []
    assert log.offsets("orders")[0].next_offset == 0


def test_what_can_be_is_written_in_pieces(log: EmbeddedLog, writes: list[Any]) -> None:
    log.publish("orders", LARGE)
    assert len(writes) > 1
    assert all(each.size_bytes <= 2 * MAX_WRITE_BYTES for each in writes)
    assert [record.value for record in log.fetch("orders", 0, 0)] == [r.value for r in LARGE]
