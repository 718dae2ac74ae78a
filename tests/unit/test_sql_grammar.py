"""Every statement of the grammar, every way to write it wrong, and the way back to text."""

from __future__ import annotations

import pickle
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import InvalidSql
from duolog.log.model import (
    AtOffset,
    AtTimestamp,
    Earliest,
    Envelope,
    Format,
    Latest,
    Op,
    PayloadMode,
    Retention,
    TopicSettings,
)
from duolog.log.routing.filter.parse import parse_filter, parse_partition_by
from duolog.sql.grammar import parse, parse_one
from duolog.sql.statements import (
    MAX_LIMIT,
    UNCHANGED,
    Ack,
    AddSource,
    ClearRetention,
    ClearTopic,
    Consume,
    CreateTopic,
    DropSource,
    DropTopic,
    ResetGroup,
    Select,
    SetPartitions,
    SetRetention,
    SkipDamage,
    Statement,
)
from duolog.sql.text import to_sql
from duolog.sql.words import MAX_BYTES

INSERT, UPDATE, DELETE = Op.INSERT, Op.UPDATE, Op.DELETE

CASES: dict[str, Statement] = {
    "CREATE TOPIC t": CreateTopic("t"),
    "create topic T": CreateTopic("T"),
    "CREATE TOPIC IF NOT EXISTS shop.orders ;": CreateTopic("shop.orders", if_not_exists=True),
    'CREATE TOPIC "my-topic"': CreateTopic("my-topic"),
    "CREATE TOPIC 'my-topic'": CreateTopic("my-topic"),
    "CREATE TOPIC t ALIAS 'a' PARTITIONS 4": CreateTopic("t", TopicSettings("a", 4)),
    "CREATE TOPIC t PARTITIONS 4 ALIAS a": CreateTopic("t", TopicSettings("a", 4)),
    "CREATE TOPIC t WITH (retention_seconds=1.5, retention_max_bytes = 10)": CreateTopic(
        "t", TopicSettings(retention=Retention(1.5, 10))
    ),
    "CREATE TOPIC t WITH (retention_seconds = NULL)": CreateTopic("t"),
    "CREATE TOPIC t WITH (Key_Format='raw', value_format='AVRO', envelope='debezium', "
    "tombstones_on_delete=false)": CreateTopic(
        "t",
        TopicSettings(
            key_format=Format.RAW,
            value_format=Format.AVRO,
            envelope=Envelope.DEBEZIUM,
            tombstones_on_delete=False,
        ),
    ),
    "CREATE TOPIC t WITH (kafka_topic='k', dedup_window_seconds=9, json_int64_as_string=TRUE)": (
        CreateTopic(
            "t",
            TopicSettings(kafka_topic="k", dedup_window_seconds=9, json_int64_as_string=True),
        )
    ),
    "ALTER TOPIC t ADD SOURCE shop.orders ON INSERT": AddSource(
        "t", "shop.orders", frozenset({INSERT})
    ),
    "ALTER TOPIC t ADD SOURCE o ON insert, UPDATE,delete": AddSource(
        "t", "o", frozenset({INSERT, UPDATE, DELETE})
    ),
    "ALTER TOPIC t ADD SOURCE o ON UPDATE WHERE qty > 5 AND (a = ';' OR b IN (1,2)) "
    "PARTITION BY a, \"b c\" WITH (payload='diff')": AddSource(
        "t",
        "o",
        frozenset({UPDATE}),
        parse_filter("qty > 5 AND (a = ';' OR b IN (1,2))"),
        ("a", "b c"),
        PayloadMode.DIFF,
    ),
    'ALTER TOPIC t ADD SOURCE o ON UPDATE COLUMNS (a, "b c") PARTITION BY (a, lower(b)) '
    "WHERE columns = 2": AddSource(
        "t",
        "o",
        frozenset({UPDATE}),
        parse_filter("columns = 2"),
        parse_partition_by("a, lower(b)"),
        columns=("a", "b c"),
    ),
    "ALTER TOPIC t ADD SOURCE o ON UPDATE WITH (payload='KEY') WHERE partition = 1": AddSource(
        "t", "o", frozenset({UPDATE}), parse_filter("partition = 1"), (), PayloadMode.KEY
    ),
    "ALTER TOPIC t DROP SOURCE shop.orders": DropSource("t", "shop.orders"),
    "ALTER TOPIC t DROP SOURCE o ON DELETE, INSERT": DropSource(
        "t", "o", frozenset({INSERT, DELETE})
    ),
    "ALTER TOPIC t SET RETENTION WITH (retention_seconds=60)": SetRetention("t", 60, UNCHANGED),
    "ALTER TOPIC t SET RETENTION WITH (retention_waits_for_mirror=FALSE)": SetRetention(
        "t", waits_for_mirror=False
    ),
    "ALTER TOPIC t SET RETENTION WITH (retention_max_bytes=NULL)": SetRetention(
        "t", UNCHANGED, None
    ),
    "ALTER TOPIC t CLEAR RETENTION": ClearRetention("t"),
    "ALTER TOPIC t SET PARTITIONS 8": SetPartitions("t", 8),
    "DROP TOPIC t": DropTopic("t"),
    "DROP TOPIC IF EXISTS t": DropTopic("t", if_exists=True),
    "CLEAR TOPIC t": ClearTopic("t"),
    "ALTER TOPIC t SKIP DAMAGED PARTITION 3 TO OFFSET 20": SkipDamage("t", 3, 20),
    "CONSUME FROM t SKIP DAMAGED": Consume("t", skip_damaged=True),
    "CONSUME FROM t": Consume("t"),
    "CONSUME FROM t GROUP 'g' PARTITION 2 FROM LATEST LIMIT 5 AUTO ACK": Consume(
        "t", "g", 2, Latest(), 5, auto_ack=True
    ),
    "CONSUME FROM t LIMIT 5 FROM EARLIEST GROUP g": Consume("t", "g", limit=5),
    "CONSUME FROM t FROM 17": Consume("t", start=AtOffset(17)),
    "CONSUME FROM t FROM OFFSET 17": Consume("t", start=AtOffset(17)),
    "CONSUME FROM t FROM TIMESTAMP '1970-01-01T00:00:01.5Z'": Consume("t", start=AtTimestamp(1500)),
    "CONSUME FROM t FROM TIMESTAMP '1970-01-01 00:00:01'": Consume("t", start=AtTimestamp(1000)),
    "CONSUME FROM t FROM TIMESTAMP '1970-01-01T01:00:00+01:00'": Consume("t", start=AtTimestamp(0)),
    "CONSUME FROM t FROM TIMESTAMP 1500": Consume("t", start=AtTimestamp(1500)),
    "ACK t GROUP 'g' PARTITION 1 UPTO OFFSET 9": Ack("t", "g", 9, 1),
    "ACK t GROUP 'g' UPTO OFFSET 9 WAIT SETTLED": Ack("t", "g", 9, None, settled=True),
    "ack t upto offset 0 group g": Ack("t", "g", 0),
    "ACK t TOPIC_ID 7 GROUP 'g' UPTO OFFSET 9": Ack("t", "g", 9, topic_id=7),
    "CONSUME FROM t TOPIC_ID 7 FROM LATEST": Consume("t", start=Latest(), topic_id=7),
    "consume from t from latest topic_id 7": Consume("t", start=Latest(), topic_id=7),
    "RESET CONSUMER GROUP 'g' ON t TO EARLIEST": ResetGroup("g", "t", Earliest()),
    "RESET CONSUMER GROUP 'it''s' ON t PARTITION 0 TO 5": ResetGroup("it's", "t", AtOffset(5), 0),
    "SELECT * FROM t WHERE a = ';' -- what; for": Select("SELECT * FROM t WHERE a = ';'"),
    "WITH x AS (SELECT 1) SELECT * FROM x;": Select("WITH x AS (SELECT 1) SELECT * FROM x"),
    "/* a; comment */ DROP /* b */ TOPIC -- c\n t": DropTopic("t"),
    "DROP TOPIC größe": DropTopic("größe"),
}


@pytest.mark.parametrize("text", CASES)
def test_a_statement_is_understood(text: str) -> None:
    assert parse_one(text) == CASES[text]
    assert parse_one(to_sql(CASES[text])) == CASES[text]


@pytest.mark.parametrize(
    "keywords",
    ["create topic", "CREATE TOPIC", "Create Topic", "cReAtE\n\ttOpIc", "create/**/topic"],
)
def test_the_case_of_keywords_does_not_count(keywords: str) -> None:
    assert parse_one(f"{keywords} Orders") == CreateTopic("Orders")


def test_semicolons_separate_statements() -> None:
    text = ";;DROP TOPIC a; CONSUME FROM b GROUP ';' ;\n SELECT ';' ; -- the end;"
    select = Select("SELECT ';'", text.index("SELECT"))
    assert parse(text) == (DropTopic("a"), Consume("b", ";"), select)
    last = parse(text)[-1]
    assert isinstance(last, Select)
    assert last.position == text.index("SELECT")


# Where the trouble is (before the ^), and a part of what is said about it.
MISTAKES = {
    "^": "no statement here",
    "^; -- nothing": "no statement here",
    "^selct 1": "Did you mean SELECT?",
    "^INSERT INTO t VALUES (1)": "Expected SELECT, CREATE",
    "^'CREATE' TOPIC t": "found `CREATE`",
    "CREATE ^TABEL t": "Expected TOPIC here, found `TABEL`",
    "CREATE ^TOPICS t": "Did you mean TOPIC?",
    "CREATE TOPIC^": "the topic's name here, found the end",
    "CREATE TOPIC ^7": "found `7`",
    'CREATE TOPIC ^""': "name is missing between these quotes",
    "CREATE TOPIC my^-topic": 'put into quotes: "my-topic"',
    "CREATE TOPIC t ^ALIS 'a'": "Did you mean ALIAS?",
    "CREATE TOPIC t PARTITIONS 1 ^PARTITIONS 2": "here twice",
    "CREATE TOPIC t PARTITIONS ^'4'": "Expected a number of partitions",
    "CREATE TOPIC t PARTITIONS ^-1": "Expected a number of partitions",
    "CREATE TOPIC t PARTITIONS ^1.5": "Expected a number of partitions",
    "CREATE TOPIC t PARTITIONS ^99999999999999999999": "Expected a number of partitions",
    "CREATE TOPIC t WITH ^retention_seconds=1": "Expected ( here",
    "CREATE TOPIC t WITH (^)": "name of an option",
    "CREATE TOPIC t WITH (^retention_second=1)": "Did you mean `retention_seconds`?",
    "CREATE TOPIC t WITH (^zzz=1)": "There is: retention_seconds, ",
    "CREATE TOPIC t WITH (envelope='flat', ^envelope='flat')": "here twice",
    "CREATE TOPIC t WITH (value_format=^'xml')": "'json', 'avro' or 'raw'",
    "CREATE TOPIC t WITH (value_format=^json)": "a text in quotes",
    "CREATE TOPIC t WITH (retention_seconds=^'1')": "a number, or NULL",
    "CREATE TOPIC t WITH (retention_seconds=^1e999)": "too large",
    "CREATE TOPIC t WITH (retention_max_bytes=^1.5)": "a whole number",
    "CREATE TOPIC t WITH (kafka_topic=^5)": "a text in quotes",
    "CREATE TOPIC t WITH (tombstones_on_delete=^1)": "TRUE or FALSE",
    "CREATE TOPIC t WITH (envelope='flat'^": "Expected ) here, found the end",
    "CREATE TOPIC t WITH (envelope ^'flat')": "Expected = here",
    "ALTER TOPIC t ^RENAME TO u": "Expected ADD, DROP, SET, CLEAR or SKIP",
    "ALTER TOPIC t ADD SOURCE o ^WHERE a = 1": "Expected ON here",
    "ALTER TOPIC t ADD SOURCE o ON ^UPSERT": "Did you mean INSERT?",
    "ALTER TOPIC t ADD SOURCE o ON INSERT, ^INSERT": "here twice",
    "ALTER TOPIC t ADD SOURCE o ON INSERT WHERE^": "Expected a condition behind WHERE",
    "ALTER TOPIC t ADD SOURCE o ON INSERT WHERE a = ^sum(b)": "aggregate",
    "ALTER TOPIC t ADD SOURCE o ON INSERT WHERE a = 1 ^b": "has no place here",
    "ALTER TOPIC t ADD SOURCE o ON INSERT PARTITION ^a": "Expected BY here",
    "ALTER TOPIC t ADD SOURCE o ON INSERT WITH (payload=^'all')": "'full', 'key' or 'diff'",
    "ALTER TOPIC t SET ^RETENTOIN WITH ()": "Did you mean RETENTION?",
    "ALTER TOPIC t SET RETENTION ^(retention_seconds=1)": "Expected WITH",
    "DROP TOPIC IF ^NOT EXISTS t": "has no place here",
    "DROP TOPIC t ^u": "A semicolon ends a statement",
    "CONSUME ^t": "Expected FROM",
    "CONSUME FROM t FROM ^YESTERDAY": "Expected EARLIEST, LATEST, TIMESTAMP or an offset",
    "CONSUME FROM t FROM TIMESTAMP ^'noon'": "Expected a time like",
    "CONSUME FROM t FROM TIMESTAMP ^noon": "Expected a time like",
    "CONSUME FROM t LIMIT ^0": "LIMIT is 1 to",
    f"CONSUME FROM t LIMIT ^{MAX_LIMIT + 1}": "LIMIT is 1 to",
    "CONSUME FROM t ^AUTO ACK": "say which, GROUP 'g'",
    "CONSUME FROM t GROUP g AUTO ^COMMIT": "Expected ACK",
    "ACK t UPTO OFFSET 5^": "GROUP 'g' is missing",
    "ACK t GROUP g^": "UPTO OFFSET n is missing",
    "ACK t GROUP g UPTO ^5": "Expected OFFSET",
    "ACK t GROUP g UPTO OFFSET 5 WAIT ^LONG": "Expected SETTLED",
    "RESET ^GROUP g ON t TO 1": "Expected CONSUMER",
    "RESET CONSUMER GROUP g ON t^": "TO EARLIEST, LATEST",
    "RESET CONSUMER GROUP g ON t TO ^'1'": "an offset here",
    "SELECT ^'x": "no closing quote",
    'SELECT ^"x': "no closing quote",
    "DROP TOPIC t ^/* x": "not closed",
    "^/* /* */ */ DROP TOPIC t": "do not nest",
    "DROP TOPIC ^?": "found `?`",
}


@pytest.mark.parametrize("marked", MISTAKES)
def test_a_mistake_is_pointed_at(marked: str) -> None:
    position = marked.index("^")
    text = marked.replace("^", "", 1)
    with pytest.raises(InvalidSql) as raised:
        parse(text)
    assert MISTAKES[marked] in raised.value.reason
    if raised.value.position is not None:
        assert raised.value.position == position
        assert str(raised.value).endswith("\n  " + " " * position + "^")
    else:
        assert not position


def test_a_mistake_in_a_later_line_shows_that_line() -> None:
    with pytest.raises(InvalidSql) as raised:
        parse("DROP TOPIC a;\nDROP TPIC b")
    assert str(raised.value).splitlines()[1:] == ["  DROP TPIC b", "       ^"]
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), vars(again)) == (str(raised.value), vars(raised.value))


def test_one_statement_is_one() -> None:
    with pytest.raises(InvalidSql, match="One statement at a time"):
        parse_one("DROP TOPIC a; DROP TOPIC b")


def test_texts_that_are_too_long_or_no_text() -> None:
    with pytest.raises(InvalidSql, match="in parts"):
        parse("SELECT '" + "x" * MAX_BYTES + "'")
    with pytest.raises(InvalidSql, match="surrogate"):
        parse("SELECT '\ud800'")


def test_names_cannot_smuggle_statements() -> None:
    evil = 't\'; DROP TOPIC "x"; --'
    assert parse(to_sql(Consume(evil, evil))) == (Consume(evil, evil),)


names = st.text(st.sampled_from(string.ascii_letters + "_.- '\";öß1\n"), min_size=1, max_size=12)
offsets = st.integers(0, 2**63 - 1)
partitions = st.none() | st.integers(0, 2**31)
places = st.one_of(
    st.just(Earliest()),
    st.just(Latest()),
    st.builds(AtOffset, offsets),
    st.builds(AtTimestamp, offsets),
)
seconds = st.floats(0.001, 1e12)
retentions = st.builds(Retention, st.none() | seconds, st.none() | offsets)
settings_ = st.builds(
    TopicSettings,
    alias=st.none() | names,
    partitions=st.integers(1, 70_000),
    retention=retentions,
    key_format=st.sampled_from(Format),
    value_format=st.sampled_from(Format),
    envelope=st.sampled_from(Envelope),
    tombstones_on_delete=st.booleans(),
    kafka_topic=st.none() | names,
    dedup_window_seconds=st.none() | seconds,
    json_int64_as_string=st.booleans(),
)
ops = st.frozensets(st.sampled_from((INSERT, UPDATE, DELETE)), min_size=1)
filters = st.sampled_from(
    ["a > 1", "a = 'x;''y' or \"with\" in (1, 2)", "case when a then b end is null"]
).map(parse_filter)
expressions = st.sampled_from(["lower(a)", 'a + "where" * 2', "case when a then b end", "a.b"]).map(
    lambda text: parse_partition_by(f"x, {text}")[1]
)
payloads = st.sampled_from((PayloadMode.FULL, PayloadMode.KEY, PayloadMode.DIFF))
statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(CreateTopic, names, settings_, st.booleans()),
    st.builds(
        AddSource,
        names,
        names,
        ops,
        st.none() | filters,
        st.tuples() | st.tuples(names) | st.tuples(names, expressions),
        payloads,
        st.none() | st.tuples(names),
    ),
    st.builds(DropSource, names, names, st.none() | ops),
    st.builds(SetRetention, names, st.none() | seconds, st.just(UNCHANGED) | st.none() | offsets),
    st.builds(ClearRetention, names),
    st.builds(SetPartitions, names, offsets),
    st.builds(DropTopic, names, st.booleans()),
    st.builds(ClearTopic, names),
    st.builds(SkipDamage, names, offsets, offsets),
    st.builds(
        Consume,
        *(names, names, partitions, places, st.integers(1, MAX_LIMIT)),
        *(st.booleans(), st.booleans()),
    ),
    st.builds(Consume, names),
    st.builds(Ack, names, names, offsets, partitions),
    st.builds(ResetGroup, names, names, places, partitions),
)


@given(st.lists(statements, min_size=1, max_size=3))
def test_text_and_back(given_statements: list[Statement]) -> None:
    assert parse(";\n".join(map(to_sql, given_statements))) == tuple(given_statements)


@given(st.text(max_size=60) | st.text("CREATE TOPIC select'\"/*-;()=1.", max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with suppress(InvalidSql):
        parse(text)


def test_a_comment_in_a_condition_swallows_no_clause_behind_it() -> None:
    condition = parse_filter("vip -- only these")
    source = AddSource("t", "o", frozenset({INSERT}), condition, ("a",), columns=("id", "name"))
    (again,) = parse(to_sql(source))
    assert isinstance(again, AddSource)
    assert again.where is not None
    assert again.where.tree == condition.tree
    assert (again.partition_by, again.columns) == (source.partition_by, source.columns)
