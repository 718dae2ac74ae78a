"""Schema documents in the log: durable, all or nothing, apart from everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from duolog.errors import InvalidRequest
from duolog.log import open_log
from duolog.log.schemas import MAX_DOCUMENT_BYTES


def test_documents_survive_a_restart(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.schema_documents.store({b"id/1": b"one", b"id/2": b"two"})
        log.schema_documents.store({b"id/1": None, b"id/3": b""})
        assert log.schema_documents.load() == {b"id/2": b"two", b"id/3": b""}
    with open_log(tmp_path / "log") as log:
        assert log.schema_documents.load() == {b"id/2": b"two", b"id/3": b""}


def test_one_bad_document_keeps_all_of_a_change_out(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        for bad in (b"", b"\xff" * 9):
            with pytest.raises(InvalidRequest, match="cannot have the key"):
                log.schema_documents.store({b"good": b"x", bad: b"y"})
        with pytest.raises(InvalidRequest, match="over the limit"):
            log.schema_documents.store({b"good": b"x", b"large": b"x" * (MAX_DOCUMENT_BYTES + 1)})
        assert log.schema_documents.load() == {}


def test_documents_are_not_touched_by_topics(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.schema_documents.store({b"k": b"v"})
        log.create_topic("orders")
        log.drop_topic("orders")
        assert log.schema_documents.load() == {b"k": b"v"}
