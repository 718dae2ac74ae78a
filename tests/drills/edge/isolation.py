"""Attacks with tokens that are limited, on what belongs to others."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from duolog.sql.select.system_tables import SYSTEM_TABLES
from tests.drills.edge.hosting import OWN, SALARIES, SECRET, Edge
from tests.drills.edge.requests import GUARDED
from tests.drills.edge.table import attack
from tests.drills.edge.wire import Answer

_KIND = "isolation"
_TOPICS = "/v1/api/topics"
_LIMITED = ("for orders", "for group mine", "for table shop", "for subject orders")
_FOR_TOPICS = ("for orders", "for table shop")
_OF_OTHERS = (SALARIES, "wages", "hr.pay", SECRET)


def _tells_nothing(answer: Answer, *, named: str = "") -> None:
    """What the request has named itself may be said again."""
    said = answer.text.replace(named, "") if named else answer.text
    assert not any(word in said for word in _OF_OTHERS), answer


def _references(edge: Edge) -> tuple[str | int, ...]:
    """The topic of others in every spelling, and topics that there are none of."""
    wanted = {"topic": SALARIES}
    answer = edge.ask("POST", f"{_TOPICS}/latest-offsets", wanted, who="system")
    number = answer.json["offsets"][0]["topic_id"]
    return (SALARIES, "wages", number, str(number), "none", 999)


@attack(
    _KIND,
    how="topics of others by name, alias and id, on each path, with `--topics`",
    result="403, in the same words as for a topic that there is not",
)
def topics_of_others(edge: Edge) -> None:
    contents: dict[str, dict[str, Any]] = {
        "consume": {"timeout_seconds": 0, "start": "Earliest"},
        "ack": {"group_id": "g", "upto_offset": 0},
        "heartbeat": {"group_id": "g", "member_id": "m", "generation": 1},
        "leave": {"group_id": "g", "member_id": "m"},
        "latest-offsets": {},
        "publish": {"messages": [{"value": "x"}]},
    }
    for who in _FOR_TOPICS:
        for path, content in contents.items():
            said = set()
            for reference in _references(edge):
                wanted = {"topic": reference, **content}
                answer = edge.ask("POST", f"{_TOPICS}/{path}", wanted, who=who)
                assert answer.status == 403, (path, reference, answer)
                _tells_nothing(answer, named=str(reference))
                said.add(answer.json["error"].replace(f"'{reference}'", "X"))
            assert len(said) == 1, said
    assert edge.salaries_are_untouched()


_STATEMENTS = (
    "SELECT * FROM {}",
    "SELECT * FROM topics.{}",
    "SELECT count(*) AS n FROM orders WHERE offset IN (SELECT offset FROM {})",
    "SELECT (SELECT max(value) FROM {}) AS v",
    "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM orders, x",
    "WITH RECURSIVE x AS (SELECT value FROM {} UNION ALL SELECT value FROM x) SELECT * FROM x",
    "SELECT value FROM orders UNION ALL SELECT value FROM {}",
    "SELECT * FROM orders o JOIN {} s ON o.offset = s.offset",
    "SELECT * FROM orders, LATERAL (SELECT * FROM {}) s",
    "SELECT * FROM (VALUES (1)) v WHERE 1 NOT IN (SELECT offset FROM {})",
    "SELECT CASE WHEN true THEN 1 ELSE (SELECT 1 FROM {}) END AS n",
    "CONSUME FROM {}",
    "CONSUME FROM {} GROUP 'mine-1' AUTO ACK",
    "ACK {} GROUP 'mine-1' UPTO OFFSET 0",
    "RESET CONSUMER GROUP 'mine-1' ON {} TO LATEST",
    "ALTER TOPIC {} ADD SOURCE shop.own ON INSERT",
    "ALTER TOPIC {} DROP SOURCE hr.pay",
    "ALTER TOPIC {} SET RETENTION WITH (retention_seconds = 1)",
    "ALTER TOPIC {} CLEAR RETENTION",
    "ALTER TOPIC {} SET PARTITIONS 9",
    "CLEAR TOPIC {}",
    "DROP TOPIC {}",
    "DROP TOPIC IF EXISTS {}",
    "CREATE TOPIC IF NOT EXISTS {}",
    "CREATE TOPIC orders_made ALIAS '{}'",
    "CREATE TOPIC orders_made WITH (kafka_topic = '{}')",
    "CONSUME FROM orders; DROP TOPIC {}",
)


_QUERIES = (
    "SELECT * FROM bills",
    "SELECT note FROM bills WHERE customer = 8 OR 1 = 1",
    "SELECT min(note) AS l, max(note) AS m, array_agg(value) AS v FROM bills",
    "SELECT a.value FROM bills a LEFT JOIN bills b ON a.note <> b.note",
    "SELECT note FROM bills UNION ALL SELECT note FROM bills ORDER BY note",
    "SELECT (SELECT max(note) FROM bills WHERE customer <> 7) AS n, value FROM bills",
    "CONSUME FROM bills",
    "CONSUME FROM bills GROUP 'own' FROM EARLIEST AUTO ACK",
)


@attack(
    _KIND,
    how="records of others in a topic of one's own, by polls and in statements, as JSON and as "
    "Arrow, with `--where`",
    result="200, with one's own records alone",
)
def records_of_others(edge: Edge) -> None:
    wanted = {"topic": "bills", "timeout_seconds": 0}
    asked: list[tuple[str, dict[str, Any]]] = [
        (f"{_TOPICS}/consume", {**wanted, "start": start, **more})
        for start in ("Earliest", {"offset": 1}, {"timestamp": 0})
        for more in ({}, {"limit": 1}, {"partition_id": 0}, {"max_bytes": 1})
    ]
    asked += [
        (f"{_TOPICS}/consume", {**wanted, "group_id": "polled"}),
        *(("/v1/api/sql", {"sql": query}) for query in _QUERIES),
    ]
    for kind in ("application/json", "application/vnd.apache.arrow.stream"):
        for path, content in asked:
            answer = edge.ask("POST", path, content, who="for customer 7", headers={"Accept": kind})
            assert answer.status == 200, (content, answer)
            said = _unpacked(answer)
            assert SECRET not in said, (content, said)
            assert OWN in said or "AUTO ACK" in content.get("sql", ""), (content, said)


def _unpacked(answer: Answer) -> str:
    """All that an answer says, with the records in it."""
    if "arrow" in answer.headers.get("content-type", ""):
        return repr(answer.body)
    payloads = [each.get("payload") or "" for each in answer.json.get("messages", [])]
    return answer.text + repr([b64decode(each) for each in payloads])


@attack(
    _KIND,
    how="topics of others in every statement of SQL, in subqueries, joins and behind other "
    "statements, with `--topics`",
    result="403; nothing of the request is done",
)
def topics_of_others_in_statements(edge: Edge) -> None:
    for statement in _STATEMENTS:
        for name in (SALARIES, "wages", "none"):
            quoted = name if "'{}'" in statement else f'"{name}"'
            text = statement.format(quoted)
            answer = edge.sql(text, "for orders")
            if statement.startswith(("SELECT * FROM topics", "SELECT * FROM orders, LATERAL")):
                assert answer.status in {403, 404, 422}, (text, answer)
            else:
                assert answer.status == 403, (text, answer)
            _tells_nothing(answer, named=name)
    for text in ("SELECT * FROM Salaries", 'SELECT * FROM "SALARIES"', "SELECT * FROM WAGES"):
        assert edge.sql(text, "for orders").status == 403, text
    assert edge.salaries_are_untouched()


@attack(
    _KIND,
    how="each of the system tables, with each limited token",
    result="only rows of its own",
)
def system_tables(edge: Edge) -> None:
    for who in _LIMITED:
        for table in SYSTEM_TABLES:
            answer = edge.sql(f"SELECT * FROM system.{table}", who)
            assert answer.status == 200, (who, table, answer)
            if who in _FOR_TOPICS:
                _tells_nothing(answer)
            if who == "for group mine":
                assert '"others"' not in answer.text, (table, answer)
    assert "others" in edge.sql("SELECT * FROM system.topic_offsets").text
    assert SALARIES in edge.sql("SELECT * FROM system.topics").text


@attack(
    _KIND,
    how="groups of others: to read, acknowledge, move, join, leave, in requests and statements, "
    "with `--groups`",
    result="403; the groups stay where they are",
)
def groups_of_others(edge: Edge) -> None:
    contents: dict[str, dict[str, Any]] = {
        "consume": {"timeout_seconds": 0},
        "ack": {"upto_offset": 0, "partition_id": 0},
        "heartbeat": {"member_id": "m", "generation": 1},
        "leave": {"member_id": "m"},
    }
    who = "for group mine"
    positions = (
        "SELECT topic, position FROM system.topic_offsets WHERE group_id = 'others' ORDER BY topic"
    )
    before = edge.sql(positions).json["rows"]
    for topic in ("orders", SALARIES):
        for group in ("others", "none", "MINE-1", "mine", "xmine-1"):
            for path, content in contents.items():
                wanted = {"topic": topic, "group_id": group, **content}
                answer = edge.ask("POST", f"{_TOPICS}/{path}", wanted, who=who)
                assert answer.status == 403, (path, group, answer)
        for statement in (
            "CONSUME FROM {} GROUP 'others'",
            "CONSUME FROM {} GROUP 'others' AUTO ACK",
            "ACK {} GROUP 'others' PARTITION 0 UPTO OFFSET 0",
            "RESET CONSUMER GROUP 'others' ON {} TO LATEST",
        ):
            assert edge.sql(statement.format(topic), who).status == 403, statement
    assert edge.sql(positions).json["rows"] == before
    assert edge.salaries_are_untouched()


@attack(
    _KIND,
    how="a route from a table of others to an own topic, and rows published to such a table, with "
    "`--topics` and `--tables`",
    result="403; there is no route, and nothing is stored",
)
def tables_of_others(edge: Edge) -> None:
    routes = "SELECT * FROM system.sources"
    before = edge.sql(routes).json["rows"]
    rows = {"table": "hr.pay", "op": "insert", "rows": [{"id": 1}], "key_columns": ["id"]}
    for who in _FOR_TOPICS:
        for table in ("hr.pay", "hr.none", '"hr.pay"', "shopping.x"):
            text = f"ALTER TOPIC orders ADD SOURCE {table} ON INSERT"
            answer = edge.sql(text, who)
            assert answer.status in {403, 422}, (who, table, answer)
            _tells_nothing(answer, named="hr.pay")
        answer = edge.ask("POST", f"{_TOPICS}/publish", rows, who=who)
        assert answer.status == 403, (who, answer)
        _tells_nothing(answer, named="hr.pay")
    assert edge.sql("ALTER TOPIC orders ADD SOURCE shop.x ON INSERT", "for orders").status == 403
    assert edge.sql(routes).json["rows"] == before
    assert edge.salaries_are_untouched()


@attack(
    _KIND,
    how="subjects of others by name, id, version, list, prefix, alias, reference, in a context, "
    "with `--subjects` and with `--topics`",
    result="403 or 404; none of their names or schemas is said",
)
def subjects_of_others(edge: Edge) -> None:
    subject = f"{SALARIES}-value"
    versions = edge.ask("GET", f"/registry/subjects/{subject}/versions/1", who="system").json
    referring = {
        "schema": json.dumps({"type": "record", "name": "R", "fields": [
            {"name": "f", "type": f"Of{SECRET}"}]}),
        "references": [{"name": f"Of{SECRET}", "subject": subject, "version": 1}],
    }  # fmt: skip
    calls: tuple[tuple[str, str, Any], ...] = (
        ("GET", f"/subjects/{subject}/versions", None),
        ("GET", f"/subjects/{subject}/versions/latest", None),
        ("GET", f"/subjects/{subject}/versions/1/schema", None),
        ("GET", f"/subjects/{subject.replace('-', '%2D')}/versions/1", None),
        ("GET", f"/subjects/:.:{subject}/versions/1", None),
        ("GET", f"/contexts/./subjects/{subject}/versions/1", None),
        ("GET", f"/schemas/ids/{versions['id']}", None),
        ("GET", f"/schemas/ids/{versions['id']}/schema", None),
        ("GET", f"/schemas/ids/{versions['id']}/versions", None),
        ("GET", f"/schemas/ids/{versions['id']}?subject=orders-value", None),
        ("GET", f"/config/{subject}", None),
        ("GET", f"/mode/{subject}", None),
        ("PUT", f"/config/{subject}", {"compatibility": "NONE"}),
        ("PUT", f"/mode/{subject}", {"mode": "READONLY"}),
        ("POST", f"/subjects/{subject}", {"schema": '"string"'}),
        ("POST", f"/subjects/{subject}/versions", {"schema": '"string"'}),
        ("POST", "/subjects/orders-made/versions", referring),
        ("POST", f"/compatibility/subjects/{subject}/versions/latest", {"schema": '"string"'}),
        ("DELETE", f"/subjects/{subject}", None),
        ("DELETE", f"/subjects/{subject}/versions/1", None),
    )
    lists = ("/subjects", "/subjects?subjectPrefix=sal", "/subjects?deleted=true", "/schemas",
             "/schemas?subjectPrefix=:*:")  # fmt: skip
    for who in ("for subject orders", *_FOR_TOPICS):
        for method, path, content in calls:
            answer = edge.ask(method, f"/registry{path}", content, who=who)
            assert answer.status in {403, 404, 422}, (who, method, path, answer)
            said = answer.text.replace(subject, "")
            assert SECRET not in said.replace(f"Of{SECRET}", ""), (who, path, answer)
            assert SALARIES not in said, (who, path, answer)
        for path in lists:
            answer = edge.ask("GET", f"/registry{path}", who=who)
            assert answer.status == 200, (who, path, answer)
            _tells_nothing(answer)
    after = edge.ask("GET", f"/registry/subjects/{subject}/versions", who="system")
    assert after.json == [1]


@attack(
    _KIND,
    how="sequences of a writer of others, asked for and used up, with `--topics`",
    result="null; the writer goes on where it was",
)
def writers_of_others(edge: Edge) -> None:
    asked = {"writer": "others"}
    path = "/v1/api/writers/last-sequence"
    for who in _FOR_TOPICS:
        for writer in ("others", "system/others", "../others", f"{who.replace(' ', '-')}/others"):
            answer = edge.ask("POST", path, {"writer": writer}, who=who)
            assert answer.json["last_sequence"] is None, (who, writer, answer)
        wanted = {"topic": "orders", "messages": [{"value": 1}], **asked, "sequence": 900}
        answer = edge.ask("POST", f"{_TOPICS}/publish", wanted, who=who)
        assert answer.status == 200, answer
    assert edge.ask("POST", path, asked, who="system").json["last_sequence"] == 40


@attack(
    _KIND,
    how="metrics, the calls between Duolog processes, settings of the whole registry, with each "
    "limited token",
    result="403; 401 for the calls",
)
def internals(edge: Edge) -> None:
    for each in GUARDED:
        if each.unlimited:
            for who in _LIMITED:
                if who == "for subject orders" and "/subjects/orders-" in each.path:
                    continue  # its own
                answer = edge.ask(
                    each.method, each.path, each.content, who=who, headers=each.headers
                )
                assert answer.status == (401 if each.headers else 403), (who, each, answer)
                _tells_nothing(answer)


@attack(
    _KIND,
    how="mistakes that make an error name what there is: names nearly right, taken, of columns; "
    "plans",
    result="none of others is named",
)
def errors_that_tell_of_others(edge: Edge) -> None:
    for text in (
        "SELECT * FROM salarie",
        "SELECT * FROM orders_none",
        "SELECT salaries FROM orders",
        "SELECT * FROM system.none",
        "SELECT * FROM none.none",
        "DROP TOPIC salary",
        "CREATE TOPIC orders",
        "CREATE TOPIC orders_x ALIAS 'orders'",
        "ALTER TOPIC orders DROP SOURCE hr.none",
        "EXPLAIN SELECT * FROM orders",
        "SHOW TABLES",
        "SELECT * FROM orders WHERE none()",
        "CONSUME FROM orders GROUP 'none'",
        "RESET CONSUMER GROUP 'none' ON orders TO OFFSET 99",
        "SELECT * FROM system.topics WHERE topic LIKE 'sal%'",
        "SELECT max(length(topic)) FROM system.topics",
    ):
        answer = edge.sql(text, "for orders")
        _tells_nothing(answer, named="salaries" if "salaries" in text else "")
        assert SECRET not in answer.text, answer


@attack(
    _KIND,
    how="what a limited token may do: its topics, groups, subjects, writers",
    result="200; else the rows above would prove nothing",
)
def what_is_its_own(edge: Edge) -> None:
    wanted = {"topic": "orders", "timeout_seconds": 0, "start": "Earliest"}
    for who in _FOR_TOPICS:
        assert edge.ask("POST", f"{_TOPICS}/consume", wanted, who=who).status == 200
        assert edge.sql("SELECT count(*) FROM orders", who).status == 200
        assert edge.ask("GET", "/registry/subjects", who=who).json == ["orders-value"]
    grouped = {**wanted, "start": "Latest", "group_id": "mine-1", "partition_id": 0}
    assert edge.ask("POST", f"{_TOPICS}/consume", grouped, who="for group mine").status == 200
    path = "/registry/subjects/orders-value/versions/latest"
    assert edge.ask("GET", path, who="for subject orders").status == 200
