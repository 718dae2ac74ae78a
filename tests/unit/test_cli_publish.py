from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.errors import DiskFull
from duolog.log import EmbeddedLog
from duolog.log.fetched import ReadRecord
from duolog.log.model import Envelope, Op, PayloadMode, Placed, Route, TopicSettings
from duolog.log.published import REMEMBERED_SEQUENCES
from duolog.log.routing.filter.parse import parse_filter

Duolog = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with topic t of two partitions."""
    folder = tmp_path / "log"
    with open_log(folder) as opened:
        opened.create_topic("t", TopicSettings(partitions=2, alias="tea"))
    return folder


@pytest.fixture
def duolog(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(log))

    def run(*arguments: str, stdin: str | bytes = "") -> Result:
        return CliRunner().invoke(app, arguments, input=stdin)

    return run


def _lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _places(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def _records(log: Path, topic: str = "t") -> dict[tuple[int, int], ReadRecord]:
    with open_log(log) as opened:
        return {
            (each.partition, record.offset): record
            for each in opened.offsets(topic)
            for record in opened.fetch(topic, each.partition, each.start)
        }


def _values(log: Path, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in _records(log, topic).values()]


def test_each_line_is_a_record_and_its_place_is_printed(duolog: Duolog, log: Path) -> None:
    lines = _lines(
        {"value": {"a": 1}, "key": "k", "partition": 1, "ts": 5, "headers": {"h": "x"}},
        {"value": "text", "partition": 0},
        {"value": None, "partition": 1, "op": "delete", "table": "ns.t"},
    )
    result = duolog("publish", "tea", stdin=lines)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        '{"topic":"t","partition":1,"offset":0}',
        '{"topic":"t","partition":0,"offset":0}',
        '{"topic":"t","partition":1,"offset":1}',
    ]
    records = _records(log)
    first = records[1, 0]
    assert (first.value, first.key, first.ts_ms) == (b'{"a":1}', b"k", 5)
    assert first.headers == (("h", b"x"),)
    assert records[0, 0].value == b"text"
    assert (records[1, 1].value, records[1, 1].op, records[1, 1].table) == (None, Op.DELETE, "ns.t")


def test_produce_is_another_name_for_publish(duolog: Duolog, log: Path) -> None:
    assert duolog("produce", "t", stdin=_lines({"value": "x"})).exit_code == 0
    assert _values(log) == [b"x"]


def test_raw_lines_are_values_as_they_are(duolog: Duolog, log: Path) -> None:
    assert duolog("publish", "t", "--raw", stdin=b' {"a":1}\r\n\n\xff\nlast').exit_code == 0
    assert _values(log) == [b' {"a":1}\r', b"", b"\xff", b"last"]


def test_empty_lines_between_records_say_nothing(duolog: Duolog, log: Path) -> None:
    assert len(_places(duolog("publish", "t", stdin='\n{"value":1}\n  \n{"value":2}\n\n'))) == 2
    assert _values(log) == [b"1", b"2"]


def test_no_input_is_nothing_to_publish(duolog: Duolog, log: Path) -> None:
    result = duolog("publish", "t")
    assert (result.exit_code, result.stdout) == (0, "")
    assert _values(log) == []


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("nonsense\n", "InvalidRecord"),
        (_lines({"vlaue": 1}), "InvalidRecord"),
        (_lines({"value": 1, "partition": 9}), "UnknownPartition"),
        (_lines({"value": "x" * (1 << 20) + "y"}), "RecordTooLarge"),
    ],
)
def test_a_bad_line_is_named_and_nothing_after_it_is_published(
    duolog: Duolog, log: Path, bad: str, code: str
) -> None:
    before = [{"value": number, "partition": number % 2} for number in range(5)]
    result = duolog("publish", "t", "--json", stdin=_lines(*before) + bad + _lines({"value": "z"}))
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert error["code"] == code
    assert error["error"].startswith("Line 6: ")
    assert [(place["partition"], place["offset"]) for place in _places(result)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 2),
    ]  # fmt: skip
    assert sorted(value or b"" for value in _values(log)) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_line_longer_than_any_record_is_refused(duolog: Duolog) -> None:
    result = duolog("publish", "t", "--raw", stdin="first\n" + "x" * (9 << 20))
    assert result.exit_code == 1
    assert "Line 2 is longer than" in result.stderr
    assert len(_places(result)) == 1


def test_a_full_disk_names_the_lines_that_were_not_written(
    duolog: Duolog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> tuple[Placed, ...]:
        raise DiskFull("The disk is full.")

    monkeypatch.setattr(EmbeddedLog, "publish", full)
    result = duolog("publish", "t", "--json", stdin=_lines({"value": 1}, {"value": 2}))
    assert result.exit_code == 1
    assert json.loads(result.stderr) == {
        "error": "Lines 1 to 2: The disk is full.",
        "code": "DiskFull",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("t", "--table", "ns.t", "--key", "id"),
        ("--table", "ns.t"),
        ("--table", "ns.t", "--key", "id", "--raw"),
        ("--table", "ns.t", "--key", "id", "--op", "upsert"),
        ("t", "--key", "id"),
        ("t", "--op", "insert"),
        ("t", "--ts", "1"),
        ("t", "--sequence", "1"),
        ("--table", "ns.t", "--key", "id", "--writer", "w", "--sequence", "1"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(
    duolog: Duolog, arguments: tuple[str, ...]
) -> None:
    result = duolog("publish", *arguments, "--json", stdin=_lines({"value": 1}))
    assert result.exit_code == 2
    assert json.loads(result.stderr)["code"] == "UsageError"


# -- rows


@pytest.fixture
def routed(log: Path) -> Path:
    """Paid orders go to topic t, keys of all orders to topic u."""
    with open_log(log) as opened:
        opened.create_topic("u")
        paid = Route("ns.orders", frozenset({Op.INSERT}), parse_filter("status = 'paid'"))
        everything = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
        opened.add_route("t", paid)
        opened.add_route("u", Route("ns.orders", everything, payload=PayloadMode.KEY))
    return log


_ROWS = ("publish", "--table", "ns.orders", "--key", "id")


def test_rows_go_by_the_routes(duolog: Duolog, routed: Path) -> None:
    rows = [{"id": number, "status": "paid" if number % 2 else "new"} for number in range(4)]
    result = duolog(*_ROWS, stdin=_lines(*rows))
    assert result.exit_code == 0
    assert result.stderr == "4 rows became 6 records.\n"
    assert sorted(place["topic"] for place in _places(result)) == ["t", "t", "u", "u", "u", "u"]
    assert sorted(json.loads(value or b"")["id"] for value in _values(routed)) == [1, 3]
    assert len(_values(routed, "u")) == 4


def test_the_operation_of_rows_is_theirs(duolog: Duolog, routed: Path) -> None:
    result = duolog(*_ROWS, "--op", "delete", stdin=_lines({"id": 1, "status": "paid"}))
    assert [place["topic"] for place in _places(result)] == ["u"]
    assert [record.op for record in _records(routed, "u").values()] == [Op.DELETE]


def test_a_row_becomes_the_same_whichever_rows_come_with_it(duolog: Duolog, routed: Path) -> None:
    rows = [
        {"id": 1, "status": "paid", "n": 1},
        {"id": 2, "status": "paid", "n": 2.5},
        {"id": 3, "status": "paid", "n": None},
        {"id": 4, "status": "paid", "extra": {"a": [1]}},
        {"id": 5, "status": "paid", "extra": {"a": ["x"]}},
    ]
    for row in rows:
        assert duolog(*_ROWS, stdin=_lines(row)).exit_code == 0
    alone = sorted(value or b"" for value in _values(routed))
    assert duolog(*_ROWS, stdin=_lines(*rows)).exit_code == 0
    assert sorted(value or b"" for value in _values(routed)) == sorted(alone * 2)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("nonsense\n", "InvalidRows"),
        ("[1]\n", "InvalidRows"),
        ("{}\n", "InvalidRows"),
        (_lines({"status": "paid"}), "InvalidRows"),  # no key
        (_lines({"id": None, "status": "paid"}), "InvalidRows"),
    ],
)
def test_a_bad_row_is_named_and_nothing_after_it_is_published(
    duolog: Duolog, routed: Path, bad: str, code: str
) -> None:
    good = {"id": 1, "status": "paid"}
    result = duolog(*_ROWS, "--json", stdin=_lines(good, good) + bad + _lines(good))
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert (error["code"], error["error"][:8]) == (code, "Line 3: ")
    assert len(_places(result)) == len(_values(routed)) + len(_values(routed, "u")) == 4


def test_a_table_without_routes_is_a_mistake(duolog: Duolog) -> None:
    result = duolog(*_ROWS, "--json", stdin=_lines({"id": 1}))
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "UnknownRoute"


# -- again


def test_the_same_lines_again_are_answered_and_not_written_again(duolog: Duolog, log: Path) -> None:
    lines = _lines(*({"value": number, "key": f"k{number % 5}"} for number in range(20)))
    first = duolog("publish", "t", "--writer", "w", stdin=lines)
    again = duolog("publish", "t", "--writer", "w", stdin=lines)
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert [place["sequence"] for place in _places(first)] == list(range(1, 21))
    assert len(_values(log)) == 20


def test_lines_that_were_added_at_the_end_are_new(duolog: Duolog, log: Path) -> None:
    lines = [{"value": number} for number in range(20)]
    duolog("publish", "t", "--writer", "w", stdin=_lines(*lines[:13]))
    assert duolog("publish", "t", "--writer", "w", stdin=_lines(*lines)).exit_code == 0
    assert sorted(int(value or b"") for value in _values(log)) == list(range(20))


def test_a_later_part_goes_on_with_its_own_sequence(duolog: Duolog, log: Path) -> None:
    lines = [{"value": number} for number in range(20)]
    duolog("publish", "t", "--writer", "w", stdin=_lines(*lines[:13]))
    rest = duolog("publish", "t", "--writer", "w", "--sequence", "11", stdin=_lines(*lines[10:]))
    assert [place["sequence"] for place in _places(rest)] == list(range(11, 21))
    assert sorted(int(value or b"") for value in _values(log)) == list(range(20))


def test_in_order_a_part_that_leaves_numbers_out_is_refused(duolog: Duolog, log: Path) -> None:
    in_order = ("publish", "t", "--writer", "w", "--in-order")
    lines = [{"value": number} for number in range(10)]
    assert duolog(*in_order, stdin=_lines(*lines[:3])).exit_code == 0
    ahead = duolog(*in_order, "--sequence", "6", "--json", stdin=_lines(*lines[5:]))
    assert ahead.exit_code == 1
    assert json.loads(ahead.stderr)["code"] == "SequenceGap"
    assert duolog(*in_order, stdin=_lines(*lines[:5])).exit_code == 0  # again, and on from there
    assert sorted(int(value or b"") for value in _values(log)) == list(range(5))
    for wrong in (
        ("publish", "t", "--in-order"),
        ("publish", "--table", "a.b", "--key", "id", "--in-order"),
    ):
        refused = duolog(*wrong, stdin="")
        assert refused.exit_code == 2
        assert "--in-order" in refused.stderr


def test_other_lines_under_the_same_numbers_are_refused(duolog: Duolog, log: Path) -> None:
    duolog("publish", "t", "--writer", "w", stdin=_lines({"value": 1}, {"value": 2}))
    other = _lines({"value": 1}, {"value": 3}, {"value": 4})
    result = duolog("publish", "t", "--writer", "w", "--json", stdin=other)
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert (error["code"], error["error"][:8]) == ("SequenceContentMismatch", "Line 2: ")
    assert _values(log) == [b"1", b"2"]


def test_another_topic_is_no_repetition(duolog: Duolog, log: Path) -> None:
    with open_log(log) as opened:
        opened.create_topic("u")
    duolog("publish", "t", "--writer", "w", stdin=_lines({"value": 1}))
    result = duolog("publish", "u", "--writer", "w", "--json", stdin=_lines({"value": 1}))
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "SequenceContentMismatch"


_LONG = 2 * REMEMBERED_SEQUENCES


def _long(count: int) -> bytes:
    return b"".join(b"value %d\n" % number for number in range(count))


def test_a_file_longer_than_what_is_remembered_goes_on_where_it_was(
    duolog: Duolog, log: Path
) -> None:
    run = ("publish", "t", "--raw", "--writer", "w")
    assert duolog(*run, stdin=_long(_LONG)).exit_code == 0
    again = duolog(*run, stdin=_long(_LONG + 100))
    assert again.exit_code == 0
    passed_over = _LONG - REMEMBERED_SEQUENCES
    assert f"{passed_over:,} records" in again.stderr
    assert [place["sequence"] for place in _places(again)] == list(
        range(passed_over + 1, _LONG + 101)
    )
    values = [value or b"" for value in _values(log)]
    assert len(values) == len(set(values)) == _LONG + 100


def test_another_file_under_a_used_name_is_found_out_before_anything_is_written(
    duolog: Duolog, log: Path
) -> None:
    run = ("publish", "t", "--raw", "--writer", "w", "--json")
    duolog(*run, stdin=_long(_LONG))
    other = duolog(*run, stdin=_long(_LONG).upper())
    assert other.exit_code == 1
    assert json.loads(other.stderr)["code"] == "SequenceContentMismatch"
    short = duolog(*run, stdin=b"other\n" * 10)
    assert (short.exit_code, short.stdout) == (1, "")
    assert json.loads(short.stderr)["code"] == "SequenceTooOld"
    assert len(_values(log)) == _LONG


def test_numbers_that_were_never_used_are_not_taken_for_published(
    duolog: Duolog, log: Path
) -> None:
    run = ("publish", "t", "--raw", "--writer", "w", "--json")
    duolog(*run, "--sequence", "5000", stdin=b"far away\n")
    result = duolog(*run, stdin=_long(5000))
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert error["code"] == "SequenceTooOld"
    assert "may not be there" in error["error"]
    assert len(_values(log)) == 2


def test_rows_again_are_answered_and_not_written_again(duolog: Duolog, routed: Path) -> None:
    rows = _lines(*({"id": number, "status": "paid"} for number in range(9)))
    first = duolog(*_ROWS, "--writer", "w", stdin=rows)
    again = duolog(*_ROWS, "--writer", "w", stdin=rows)
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert first.stderr == again.stderr == "9 rows became 18 records.\n"
    counted = [(each["topic"], each["partition"], each["sequence"]) for each in _places(first)]
    assert [each for each in counted if each[0] == "u"] == [("u", 0, n) for n in range(1, 10)]
    assert len(_values(routed)) == len(_values(routed, "u")) == 9


def test_rows_may_come_in_other_bunches_when_they_are_sent_again(
    duolog: Duolog, routed: Path
) -> None:
    rows = [{"id": number, "status": "paid"} for number in range(9)]
    duolog(*_ROWS, "--writer", "w", stdin=_lines(*rows[:4]))
    other_shape = {"id": 9, "status": "paid", "more": 1}
    assert duolog(*_ROWS, "--writer", "w", stdin=_lines(*rows, other_shape)).exit_code == 0
    assert sorted(json.loads(value or b"")["id"] for value in _values(routed)) == list(range(10))
    assert len(_values(routed, "u")) == 10


def test_a_row_that_is_too_large_keeps_those_after_it_out_with_a_writer_too(
    duolog: Duolog, routed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOG_MAX_RECORD_BYTES", "100")
    rows = [{"id": number, "status": "paid", "pad": ""} for number in range(9)]
    rows[4]["pad"] = "x" * 100
    result = duolog(*_ROWS, "--writer", "w", "--json", stdin=_lines(*rows))
    assert result.exit_code == 1
    error = json.loads(result.stderr)
    assert (error["code"], error["error"][:8]) == ("RecordTooLarge", "Line 5: ")
    assert sorted(json.loads(value or b"")["id"] for value in _values(routed)) == [0, 1, 2, 3]
    assert len(_places(result)) == 8


def test_a_writer_of_rows_without_routes_is_a_mistake(duolog: Duolog) -> None:
    result = duolog(*_ROWS, "--writer", "w", "--json", stdin=_lines({"id": 1}))
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "UnknownRoute"


@pytest.mark.parametrize("writer", [(), ("--writer", "w")])
def test_rows_may_come_with_the_rows_before_them(
    duolog: Duolog, routed: Path, writer: tuple[str, ...]
) -> None:
    with open_log(routed) as opened:
        opened.create_topic("v")
        updates = frozenset({Op.UPDATE})
        opened.add_route("v", Route("ns.orders", updates, payload=PayloadMode.DIFF))
    lines = _lines(
        {"before": {"id": 1, "qty": 1}, "after": {"id": 1, "qty": 2}},
        {"before": None, "after": {"id": 2, "qty": 3}},
    )
    result = duolog(*_ROWS, "--op", "update", "--before", *writer, stdin=lines)
    assert result.stderr == "2 rows became 4 records.\n"
    told = [json.loads(value or b"")["before"] for value in _values(routed, "v")]
    assert told == [{"qty": 1}, None]
    flat = duolog(*_ROWS, "--op", "update", "--before", "--json", stdin=_lines({"id": 1}))
    error = json.loads(flat.stderr)
    assert (error["code"], error["error"][:8]) == ("InvalidRows", "Line 1: ")


@pytest.mark.parametrize("writer", [(), ("--writer", "w")])
def test_rows_that_no_route_takes_are_dropped_when_told_so(
    duolog: Duolog, routed: Path, writer: tuple[str, ...]
) -> None:
    rows = ("publish", "--table", "ns.none", "--key", "id", *writer)
    assert duolog(*rows, "--unrouted", "drop", stdin=_lines({"id": 1})).stderr == (
        "1 row became 0 records.\n"
    )
    refused = duolog(*rows, "--json", stdin=_lines({"id": 1}))
    assert json.loads(refused.stderr)["code"] == "UnknownRoute"
    assert duolog(*rows, "--unrouted", "keep", stdin=b"").exit_code == 2
    assert duolog("publish", "t", "--before", stdin=b"").exit_code == 2


def test_rows_whose_payload_carries_a_time_are_the_same_at_the_same_time(
    duolog: Duolog, log: Path
) -> None:
    with open_log(log) as opened:
        opened.create_topic("d", TopicSettings(envelope=Envelope.DEBEZIUM))
        opened.add_route("d", Route("ns.orders", frozenset({Op.INSERT})))
    run = (*_ROWS, "--writer", "w", "--ts", "1700000000000")
    assert duolog(*run, stdin=_lines({"id": 1})).exit_code == 0
    assert duolog(*run, stdin=_lines({"id": 1})).exit_code == 0
    assert [json.loads(value or b"")["ts_ms"] for value in _values(log, "d")] == [1700000000000]


def test_many_rows_go_on_where_they_were(
    duolog: Duolog, routed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.log.published.REMEMBERED_SEQUENCES", 8)
    rows = [{"id": number, "status": "paid" if number % 3 else "new"} for number in range(12)]
    assert duolog(*_ROWS, "--writer", "w", stdin=_lines(*rows[:10])).exit_code == 0
    again = duolog(*_ROWS, "--writer", "w", stdin=_lines(*rows))
    assert again.exit_code == 0
    assert "passed over" in again.stderr
    assert len(_values(routed, "u")) == 12
    assert len(_values(routed)) == 8
