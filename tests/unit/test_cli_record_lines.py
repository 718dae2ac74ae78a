from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.cli.record_lines import Lines, record_of
from duolog.errors import InvalidRecord
from duolog.log.fetched import ReadRecord
from duolog.log.model import Format, Op, PayloadMode, Record, Topic, TopicSettings


def _topic(kind: Format = Format.JSON) -> Topic:
    return Topic(1, "orders", TopicSettings(key_format=kind, value_format=kind), (), 0, 0)


def _read(
    value: bytes | None,
    key: bytes | None = None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
    op: Op = Op.NONE,
    table: str | None = None,
    payload: PayloadMode = PayloadMode.NONE,
) -> ReadRecord:
    return ReadRecord(7, 1_700_000_000_000, key, value, headers, op, table, payload)


def _out(record: ReadRecord, kind: Format = Format.JSON, *, raw: bool = False) -> dict[str, Any]:
    line = Lines(_topic(kind), raw=raw).line(2, record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def _in(**fields: Any) -> Record:
    return record_of(json.dumps(fields).encode())


def test_a_plain_record_has_these_fields_and_no_others() -> None:
    assert _out(_read(b'{"qty":2}', b"a", (("trace", b"1f"),))) == {
        "topic": "orders",
        "topic_id": 1,
        "partition": 2,
        "offset": 7,
        "ts": 1_700_000_000_000,
        "op": None,
        "key": "a",
        "value": {"qty": 2},
        "headers": [{"name": "trace", "value": "1f"}],
    }


def test_a_change_also_says_its_table_and_payload() -> None:
    line = _out(_read(None, b"1", op=Op.DELETE, table='shop."o"', payload=PayloadMode.KEY))
    assert (line["op"], line["table"], line["payload"]) == ("delete", 'shop."o"', "key")
    assert line["value"] is None


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"17", 17),
        (b"true", True),
        (b'"abc"', "abc"),
        (b"abc", "abc"),
        (b"", ""),
        (b"null", "null"),  # not the same as no value
        (b"NaN", "NaN"),
        (b'{"a":NaN}', '{"a":NaN}'),
        (b"{", "{"),
        ("é\n".encode(), "é\n"),
        (b"[" * 100_000, "[" * 100_000),
        (b"9" * 5000, "9" * 5000),
        (b'{\r\n"a":\n1}\n', {"a": 1}),
        (b"\xef\xbb\xbf{}", "\ufeff{}"),
    ],
)
def test_json_is_shown_as_json_and_other_text_as_text(content: bytes, shown: object) -> None:
    line = _out(_read(content, content))
    assert line["value"] == shown
    assert line["key"] == shown
    assert "value_encoding" not in line


def test_json_is_shown_digit_for_digit() -> None:
    content = b'{"price":1.10000000000000000000001,"at":1E400,"big":123456789012345678901234567890}'
    assert content in Lines(_topic(), raw=False).line(0, _read(content))


def test_a_raw_topic_shows_text_that_looks_like_json_as_text() -> None:
    line = _out(_read(b'{"a":1}', b"17"), Format.RAW)
    assert (line["key"], line["value"]) == ("17", '{"a":1}')


def test_what_is_no_text_is_base64_and_says_so() -> None:
    line = _out(_read(b"\xff\x00", b"\xfe", (("h", b"\x80"),)))
    assert (line["value"], line["value_encoding"]) == ("/wA=", "base64")
    assert (line["key"], line["key_encoding"]) == ("/g==", "base64")
    assert line["headers"] == [{"name": "h", "value": "gA==", "value_encoding": "base64"}]


def test_raw_is_always_base64_but_for_null() -> None:
    line = _out(_read(b"{}", None, (("h", b"x"),)), raw=True)
    assert (line["value"], line["value_encoding"], line["key"]) == ("e30=", "base64", None)
    assert line["headers"] == [{"name": "h", "value": "eA==", "value_encoding": "base64"}]


_HEADERS = st.lists(st.tuples(st.text(), st.none() | st.binary()), max_size=3).map(tuple)


@given(st.none() | st.binary(), st.none() | st.binary(), _HEADERS, st.sampled_from(Op))
def test_a_raw_line_that_comes_in_again_is_the_same_record(
    key: bytes | None, value: bytes | None, headers: Any, op: Op
) -> None:
    change = (op, None, PayloadMode.NONE) if op is Op.NONE else (op, "ns.t", PayloadMode.FULL)
    line = Lines(_topic(), raw=True).line(2, _read(value, key, headers, *change))
    assert record_of(line) == Record(value, key, headers, 2, 1_700_000_000_000, *change)


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner | st.none() | st.text(), max_size=3)
        | st.dictionaries(st.text(), inner | st.none() | st.text(), max_size=3)
    ),
    max_leaves=8,
)


@given(_JSON)
def test_a_json_value_comes_out_as_it_came_in(value: Any) -> None:
    record = _in(value=value)
    assert _out(_read(record.value))["value"] == value
    assert json.loads(record.value or b"") == value


@given(st.text())
def test_text_comes_in_as_its_utf_8_bytes(text: str) -> None:
    assert _in(value=text, key=text) == Record(text.encode(), text.encode())


def test_other_json_comes_in_as_its_compact_text() -> None:
    assert _in(value={"b": [1, 2.5], "a": "é"}).value == '{"b":[1,2.5],"a":"é"}'.encode()
    assert _in(value=17, key=[1]) == Record(b"17", b"[1]")
    assert _in(value=False).value == b"false"
    assert _in(value=None) == Record(None)


def test_all_fields_of_a_record_are_taken() -> None:
    line = {
        "value": "v",
        "key": "k",
        "headers": {"a": "1", "b": None},
        "partition": 3,
        "ts": 12,
        "op": "update",
        "table": "ns.t",
        "payload": "diff",
    }
    assert _in(**line) == Record(
        b"v", b"k", (("a", b"1"), ("b", None)), 3, 12, Op.UPDATE, "ns.t", PayloadMode.DIFF
    )


def test_headers_may_repeat_in_a_list() -> None:
    encoded = base64.b64encode(b"\xff").decode()
    headers = [
        {"name": "h", "value": "1"},
        {"name": "h", "value": encoded, "value_encoding": "base64"},
        {"name": "h"},
    ]
    assert _in(value=None, headers=headers).headers == (("h", b"1"), ("h", b"\xff"), ("h", None))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"hello", "It is not JSON: Expecting value at column 1"),
        (b'{"value":1} x', "Extra data at column 13"),
        (b"\xff", "not UTF-8"),
        (b'{"value":NaN}', "NaN is not JSON"),
        (b'{"value":' + b"[" * 100_000, "not JSON"),
        (b'{"value":' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"value":1e400}', '"value" cannot be written'),
        (b'{"value":"\\ud800"}', '"value" cannot be written'),
        (b"17", "--raw"),
        (b"[]", "--raw"),
        (b'{"key":"a"}', 'needs "value"'),
        (b'{"vlue":1}', 'did you mean "value"'),
        (b'{"value":1,"colour":2}', '"colour" is no field of a record; known are value, key'),
        (b'{"value":1,"partition":"0"}', '"partition" must be a whole number; got "0"'),
        (b'{"value":1,"partition":true}', '"partition" must be a whole number; got true'),
        (b'{"value":1,"ts":1.5}', '"ts" must be a whole number'),
        (b'{"value":1,"table":1}', '"table" must be text'),
        (b'{"value":1,"op":"upsert"}', '"op" is one of insert, update, delete, read'),
        (b'{"value":1,"op":[]}', '"op" is one of'),
        (b'{"value":1,"payload":"half"}', '"payload" is one of full, key, diff'),
        (b'{"value":1,"headers":"a"}', '"headers" is an object'),
        (b'{"value":1,"headers":[{"nme":"a"}]}', '"headers" is an object'),
        (b'{"value":"a","value_encoding":"hex"}', 'can only be "base64"'),
        (b'{"value":1,"value_encoding":"base64"}', 'can only be "base64"'),
        (b'{"value":"?","value_encoding":"base64"}', '"value" is not base64'),
        (b'{"value":"\xc3\xa9","value_encoding":"base64"}', '"value" is not base64'),
    ],
)
def test_a_bad_line_says_what_is_wrong(line: bytes, told: str) -> None:
    with pytest.raises(InvalidRecord) as error:
        record_of(line)
    assert told in str(error.value)


def test_an_old_place_does_not_decide_the_new_one() -> None:
    assert _in(value="v", topic="elsewhere", offset=99) == Record(b"v")
