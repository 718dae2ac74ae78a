"""No two writers are one, whatever their names are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import EpochGap
from duolog.log import open_log
from duolog.log.keys import epoch_key
from duolog.log.model import Mode, Writer
from duolog.log.staging import staging_folder
from duolog.log.store import WriteBatch
from tests.support.records import part_of

names = st.text(alphabet="ab:\\", min_size=1, max_size=6)
writers = st.builds(Writer, st.sampled_from(Mode), names, names)

FIRST = Writer(Mode.STREAM, "a:b", "c")
SECOND = Writer(Mode.STREAM, "a", "b:c")
OLD_EPOCH = b'{"v":1,"epoch":0,"ranges":[],"fingerprints":{},"duplicates_dropped":0,"at":5}'


@given(writers, writers)
def test_two_writers_have_two_names(one: Writer, other: Writer) -> None:
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize("target", ["topic:orders", "table:shop.orders", "topics"])
def test_most_writers_are_called_as_before(target: str) -> None:
    writer = Writer(Mode.STREAM, "query", target)
    assert str(writer) == writer.former_name == f"stream:query:{target}"


def test_writers_that_look_alike_have_epochs_and_folders_of_their_own(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("orders")
        log.append(FIRST, 0, [part_of(topic, {0: [b"first"]})])
        log.append(SECOND, 0, [part_of(topic, {0: [b"second"]})])
        log.append(FIRST, 1, [part_of(topic, {0: [b"first"]})])
        with pytest.raises(EpochGap):
            log.append(SECOND, 2, [part_of(topic, {0: [b"second"]})])
        assert log.forget_writer(FIRST)
        assert log.last_epoch(FIRST) is None
        assert log.last_epoch(SECOND) is not None
    assert staging_folder(tmp_path, FIRST, 0) != staging_folder(tmp_path, SECOND, 0)


def test_an_epoch_of_an_older_duolog_is_found_until_its_writer_goes_on(tmp_path: Path) -> None:
    key = epoch_key("stream:a:b:c")
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("orders")
        old = WriteBatch()
        old.put("epochs", key, OLD_EPOCH)
        log._state.store.commit(old)
        assert log.append(FIRST, 0, []).repeated
        log.append(FIRST, 1, [part_of(topic, {0: [b"first"]})])
        assert log.append(SECOND, 0, []).repeated  # nothing says whose it was
        log.append(SECOND, 1, [part_of(topic, {0: [b"second"]})])
        log.append(FIRST, 2, [part_of(topic, {0: [b"first"]})])
    with open_log(tmp_path / "log") as log:
        last = [log.last_epoch(writer) for writer in (FIRST, SECOND)]
        assert [each.epoch for each in last if each is not None] == [2, 1]


def test_forgetting_a_writer_leaves_nothing_under_its_former_name(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        old = WriteBatch()
        old.put("epochs", epoch_key("stream:a:b:c"), OLD_EPOCH)
        log._state.store.commit(old)
        assert log.forget_writer(FIRST)
        assert log.last_epoch(FIRST) is None
        assert not log.forget_writer(FIRST)
