"""Who may send which statement, for which topics; and that a statement does only what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.rules import TopicRules
from duolog.bridge.http.tokens import add_token
from duolog.log.mirror_model import MirrorTarget
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from tests.integration.serve_host import Reply, ServedLog, served
from tests.integration.sql_asking import SQL, ask_sql, rows_of

READS = {
    "select": "SELECT count(*) AS n FROM orders",
    "system": "SELECT * FROM system.topics",
    "consume": "CONSUME FROM orders GROUP 'g' LIMIT 1",
    "auto ack": "CONSUME FROM orders GROUP 'g' LIMIT 1 AUTO ACK",
    "ack": "ACK orders GROUP 'g' UPTO OFFSET 0",
}
DEFINES = {
    "create": "CREATE TOPIC IF NOT EXISTS orders_new",
    "add": "ALTER TOPIC orders ADD SOURCE shop.own ON INSERT",
    "drop source": "ALTER TOPIC orders DROP SOURCE shop.own",
    "set retention": "ALTER TOPIC orders SET RETENTION WITH (retention_seconds = 1e6)",
    "clear retention": "ALTER TOPIC orders CLEAR RETENTION",
    "partitions": "ALTER TOPIC orders_other SET PARTITIONS 2",
    "reset": "RESET CONSUMER GROUP 'g' ON orders TO EARLIEST",
    "clear": "CLEAR TOPIC orders_other",
    "drop": "DROP TOPIC IF EXISTS orders_gone",
}


class Guarded:
    """A host with tokens, by the names of what they may."""

    def __init__(self, host: ServedLog, tokens: dict[str, str]) -> None:
        self.host = host
        self._tokens = tokens

    def ask(self, text: str, token: str | None) -> Reply:
        return ask_sql(self.host, text, token=None if token is None else self._tokens[token])


@pytest.fixture(scope="module")
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    path = folder / "tokens"
    tokens = {role.word: add_token(path, Caller(role.word, role)) for role in Role}
    tokens["limited"] = add_token(
        path,
        Caller("limited", Role.DBA, ("orders*", "Orders*"), ("g", "mine-*"), ("shop.*",)),
    )
    tokens["reader"] = add_token(path, Caller("reader", Role.SERVICE, ("orders*", "Mixed")))
    rules = TopicRules(allow_user_role_consume=getattr(request, "param", False))
    with served(folder / "log", tokens=path, rules=rules) as host:
        for name in ("orders", "orders_other", "orders_gone", "payments", "Mixed"):
            host.log.create_topic(name, TopicSettings(value_format=Format.RAW))
            host.log.publish(name, [Record(b"a"), Record(b"b")])
        host.log.ack("others-group", "payments", 0)
        host.log.add_route("payments", Route("shop.cards", frozenset({Op.INSERT})))
        host.log.create_topic("aliased", TopicSettings(alias="orders_nick"))
        yield Guarded(host, tokens)


@pytest.mark.parametrize("guarded", [False, True], ids=["", "users consume"], indirect=True)
@pytest.mark.parametrize("text", [*READS.values(), *DEFINES.values()], ids=[*READS, *DEFINES])
def test_every_statement_with_every_role(guarded: Guarded, text: str) -> None:
    users_consume = guarded.host.host.topic_rules.allow_user_role_consume
    least = Role.DBA
    if text in READS.values():
        least = Role.USER if users_consume else Role.SERVICE
    assert guarded.ask(text, None).status == 401
    for role in Role:
        reply = guarded.ask(text, role.word)
        if role < least:
            assert (reply.status, reply.code) == (403, "Forbidden"), role
        else:
            allowed = (
                {200} if text not in (DEFINES["add"], DEFINES["drop source"]) else {200, 409, 404}
            )
            assert reply.status in allowed, (role, reply.body)


def test_all_statements_of_a_request_have_to_be_allowed(guarded: Guarded) -> None:
    for text in ("CREATE TOPIC not_made; SELECT 1", "SELECT 1; CREATE TOPIC not_made"):
        refused = guarded.ask(text, "service")
        assert (refused.status, refused.code) == (403, "Forbidden")
        assert refused.json["results"] == []
        assert refused.json["statement"] == 1 + text.startswith("SELECT")
    mixed = guarded.ask("CREATE TOPIC orders_not_made; CLEAR TOPIC payments", "limited")
    assert (mixed.status, mixed.json["statement"]) == (403, 2)
    topics = [topic.name for topic in guarded.host.log.topics()]
    assert not [name for name in topics if name.endswith("not_made")]


FOREIGN = [
    "SELECT * FROM {}",
    "SELECT count(*) AS n FROM orders WHERE offset IN (SELECT offset FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM orders, x",
    "CONSUME FROM {}",
    "CONSUME FROM {} GROUP 'g' AUTO ACK",
    "ACK {} GROUP 'g' UPTO OFFSET 0",
    "RESET CONSUMER GROUP 'g' ON {} TO LATEST",
    "ALTER TOPIC {} ADD SOURCE shop.own ON INSERT",
    "ALTER TOPIC {} DROP SOURCE shop.cards",
    "ALTER TOPIC {} SET RETENTION WITH (retention_seconds = 1)",
    "ALTER TOPIC {} CLEAR RETENTION",
    "ALTER TOPIC {} SET PARTITIONS 9",
    "CLEAR TOPIC {}",
    "DROP TOPIC {}",
    "DROP TOPIC IF EXISTS {}",
    "CREATE TOPIC IF NOT EXISTS {}",
    "CREATE TOPIC orders_made ALIAS '{}'",
    "CREATE TOPIC orders_made WITH (kafka_topic = '{}')",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_token_for_some_topics_names_no_others(guarded: Guarded, text: str) -> None:
    before = guarded.host.log.topics(), guarded.host.log.group_positions()
    number = str(guarded.host.log.topic("payments").id)
    for name in ("payments", "absent", number, "999", "aliased"):
        quoted = name if "'{}'" in text else f'"{name}"'
        refused = guarded.ask(text.format(quoted), "limited")
        assert (refused.status, refused.code) == (403, "Forbidden"), refused.body
        assert refused.json["error"].replace(name, "X") == (
            "The token 'limited' may not use topic 'X'. Have one made with --topics that match it."
        )
    assert (guarded.host.log.topics(), guarded.host.log.group_positions()) == before


def test_an_alias_leads_to_its_topic(guarded: Guarded) -> None:
    for text in ("SELECT * FROM orders_nick", "CONSUME FROM orders_nick"):
        assert guarded.ask(text, "limited").status == 403
        assert guarded.ask(text, "service").status == 200


def test_names_without_quotes_find_topics_in_any_case_that_a_token_may_use(
    guarded: Guarded,
) -> None:
    assert guarded.ask("SELECT value FROM Mixed", "reader").json["rows"] == [["a"], ["b"]]
    assert guarded.ask("SELECT value FROM Payments", "reader").status == 403


def test_an_unknown_topic_of_ones_own_tells_of_no_other(guarded: Guarded) -> None:
    for text in ("SELECT * FROM orders_none", "CONSUME FROM orders_none", "DROP TOPIC orders_none"):
        unknown = guarded.ask(text, "limited")
        assert (unknown.status, unknown.code) == (404, "UnknownTopic")
        assert "payments" not in unknown.json["error"]


def test_system_tables_show_only_what_a_token_may_see(guarded: Guarded) -> None:
    guarded.host.log.ack("own-group", "orders", 0)
    for topic in ("orders", "payments"):
        target = MirrorTarget("cluster", topic, "id", 1, 0, 0, 0)
        guarded.host.log.begin_mirror(topic, 0, target)
    for table in ("topics", "sources", "partitions", "topic_offsets", "mirror"):
        text = f"SELECT DISTINCT topic FROM system.{table} ORDER BY topic"
        seen = [row[0] for row in guarded.ask(text, "reader").json["rows"]]
        assert [name for name in seen if not name.startswith(("orders", "Mixed"))] == []
        everything = [row[0] for row in guarded.ask(text, "system").json["rows"]]
        assert "payments" in everything
        assert set(seen) <= set(everything)
    groups = guarded.ask("SELECT group_id FROM system.topic_offsets", "reader").json["rows"]
    assert ["own-group"] in groups
    assert ["others-group"] not in groups
    lags = "SELECT group_id, lag, lag_seconds >= 0 FROM system.topic_offsets"
    assert guarded.ask(lags, "reader").json["rows"] == [["own-group", 1, True]]
    assert ["others-group", 1, True] in guarded.ask(lags, "system").json["rows"]


def test_a_source_that_feeds_topics_of_others_is_not_copied_to_ones_own(guarded: Guarded) -> None:
    text = "ALTER TOPIC orders ADD SOURCE shop.cards ON INSERT"
    refused = guarded.ask(text, "limited")
    assert (refused.status, refused.code) == (403, "Forbidden")
    assert "payments" not in refused.json["error"]
    assert guarded.ask(text, "dba").status == 200
    assert guarded.ask("ALTER TOPIC orders DROP SOURCE shop.cards", "dba").status == 200


def test_a_limited_dba_defines_its_own_topics(guarded: Guarded) -> None:
    made = guarded.ask(
        "CREATE TOPIC orders_mine ALIAS 'orders_m'; "
        "ALTER TOPIC orders_m ADD SOURCE shop.mine ON INSERT; "
        "ALTER TOPIC orders_mine SET PARTITIONS 2; SELECT * FROM system.topics; "
        "DROP TOPIC orders_mine",
        "limited",
    )
    assert made.status == 200, made.body
    shown = [row[0] for row in made.json["results"][3]["rows"]]
    assert "orders_mine" in shown
    assert "payments" not in shown


def test_a_token_for_some_groups_moves_no_others_and_sees_none(guarded: Guarded) -> None:
    for group in ("mine-1", "another"):
        guarded.host.log.begin_group(group, "orders", {0: 0})
    for statement in (
        "CONSUME FROM orders GROUP '{}'",
        "CONSUME FROM orders GROUP '{}' AUTO ACK",
        "ACK orders GROUP '{}' UPTO OFFSET 0",
        "RESET CONSUMER GROUP '{}' ON orders TO LATEST",
    ):
        refused = guarded.ask(statement.format("another"), "limited")
        assert (refused.status, refused.code) == (403, "Forbidden")
        assert refused.json["error"].startswith("The token 'limited' may not use group 'another'.")
        assert guarded.ask(statement.format("mine-1"), "limited").status == 200, statement
    position = guarded.host.log.group_position("another", "orders", 0)
    assert position is not None
    assert (position.position, position.version) == (0, 1)
    seen = "SELECT DISTINCT group_id FROM system.topic_offsets"
    assert ["another"] in guarded.ask(seen, "dba").json["rows"]
    assert ["another"] not in guarded.ask(seen, "limited").json["rows"]
    assert ["mine-1"] in guarded.ask(seen, "limited").json["rows"]


def test_a_name_that_is_taken_does_not_tell_by_whom(guarded: Guarded) -> None:
    guarded.host.log.create_topic("secret_salaries", TopicSettings(alias="orders_alias"))
    for statement in (
        "CREATE TOPIC orders_alias",
        "CREATE TOPIC IF NOT EXISTS orders_alias",
        "CREATE TOPIC orders_other ALIAS 'orders_alias'",
    ):
        taken = guarded.ask(statement, "limited")
        assert (taken.status, taken.code) == (409, "NameTaken"), taken.body
        assert "salaries" not in taken.json["error"]
    guarded.host.log.drop_topic("secret_salaries")


def test_a_token_for_some_topics_routes_the_tables_that_it_names(guarded: Guarded) -> None:
    refused = guarded.ask("ALTER TOPIC orders ADD SOURCE hr.pay ON INSERT", "limited")
    assert (refused.status, refused.code) == (403, "Forbidden")
    assert "--tables" in refused.json["error"]
    assert guarded.host.log.routing_plan().routes_of("hr.pay") == ()


HOSTILE = [
    "x'; DROP TOPIC payments; --",
    'x"; DROP TOPIC payments; --',
    "x/*",
    "*/ DROP TOPIC payments /*",
    "x\\'; DROP TOPIC payments; --",
    "../../etc/passwd",
    "$(touch pwned)",
    "`touch pwned`",
    "| touch pwned",
    "${IFS}",
    "%s%n{}",
    "\u2028\u0000x",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_names_whatever_they_hold(guarded: Guarded, name: str) -> None:
    host, quoted, text = guarded.host, name.replace('"', '""'), name.replace("'", "''")
    before = host.log.topics()
    for statement in ("SELECT * FROM", "CONSUME FROM", "DROP TOPIC", "CREATE TOPIC", "CLEAR TOPIC"):
        refused = guarded.ask(f'{statement} "{quoted}"', "dba")
        assert refused.status in {404, 422}, refused.body
        assert refused.code in {"UnknownTopic", "InvalidName", "InvalidSql"}
    assert guarded.ask(f"CREATE TOPIC made ALIAS '{text}'", "dba").code == "InvalidName"
    acknowledged = guarded.ask(f"ACK payments GROUP '{text}' UPTO OFFSET 0", "dba")
    if acknowledged.status == 200:
        where = f"SELECT group_id FROM system.topic_offsets WHERE group_id = '{text}'"
        assert guarded.ask(where, "dba").json["rows"] == [[name]]
        host.log.delete_group(name)
    else:
        assert acknowledged.code == "InvalidName"
    assert host.log.topics() == before


FILES = [
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM 'file:///etc/passwd'",
    "SELECT * FROM '{here}/data.csv'",
    'SELECT * FROM "{here}/data.csv"',
    "SELECT * FROM read_csv('{here}/data.csv')",
    "SELECT * FROM read_parquet('{here}/data.csv')",
    "SELECT * FROM read_json('{here}/data.csv')",
    "SELECT * FROM parquet_metadata('{here}/data.csv')",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM 'http://127.0.0.1/data.csv'",
    "SELECT * FROM 's3://bucket/data.csv'",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{here}/data.csv'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE FUNCTION f() RETURNS INT RETURN 1",
    "COPY orders TO '{here}/out.csv'",
    "COPY (SELECT 1) TO '{here}/out.csv'",
    "SELECT * INTO other FROM orders",
    "WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x",
    "INSERT INTO orders VALUES (1)",
    "SET datafusion.execution.batch_size = 1",
    "EXPLAIN ANALYZE SELECT * FROM orders",
    "SHOW TABLES",
    "PREPARE p AS SELECT 1",
]


@pytest.mark.parametrize("text", FILES)
def test_a_query_reads_and_writes_no_files(guarded: Guarded, tmp_path: Path, text: str) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    refused = guarded.ask(text.format(here=tmp_path), "system")
    assert (refused.status, refused.code) in {(422, "InvalidSql"), (404, "UnknownTopic")}
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_refusals_are_counted(guarded: Guarded) -> None:
    host = guarded.host.host
    before = {reason: _refused(host, reason) for reason in ("role", "topic", "no token")}
    guarded.ask("CREATE TOPIC x", "service")
    guarded.ask("SELECT * FROM payments", "reader")
    guarded.ask("CONSUME FROM payments", "reader")
    guarded.ask("SELECT 1", None)
    after = {reason: _refused(host, reason) for reason in before}
    assert {reason: after[reason] - before[reason] for reason in before} == {
        "role": 1,
        "topic": 2,
        "no token": 1,
    }


def _refused(host: object, reason: str) -> float:
    from duolog.bridge.http.host import Host
    from duolog.bridge.metrics.names import REFUSED

    assert isinstance(host, Host)
    return host.tally.number(REFUSED, reason)


def test_other_methods_and_kinds_of_body_are_refused(guarded: Guarded) -> None:
    token = guarded._tokens["system"]
    assert guarded.host.ask(SQL, token=token).status == 405
    plain = {"Content-Type": "text/plain"}
    assert guarded.host.ask(SQL, b"SELECT 1", token=token, headers=plain).status == 415
    assert guarded.host.ask(SQL, b"SELECT 1", token=token).status == 400
    assert rows_of(guarded.host, "SELECT 1", token=token) == [[1]]
