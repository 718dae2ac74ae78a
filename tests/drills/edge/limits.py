"""Attacks that want more than one caller may have: bytes, connections, time, memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from duolog.reach.calls import CALLS
from tests.drills.edge.hosting import (
    MAX_CONNECTIONS,
    MAX_CONSUME_SECONDS,
    MAX_SCHEMAS_BYTES,
    MAX_STORED_GROUPS_OF_TOKEN,
    Edge,
    until,
)
from tests.drills.edge.memory import MOST_MEMORY_BYTES, MemoryWatch
from tests.drills.edge.requests import INTERNAL, PROTOCOL
from tests.drills.edge.table import attack
from tests.drills.edge.wire import (
    DEADLINE_SECONDS,
    answers_in,
    connect,
    read_to_end,
    request,
)

_KIND = "limits"
_PUBLISH = "/v1/api/topics/publish"
_CONSUME = "/v1/api/topics/consume"
_SQL = "/v1/api/sql"
_WITHIN_SECONDS = 20.0
"""Far beyond what the drill's settings let a client be silent."""

_MOST_HEADER_BYTES = 1 << 20
_BODY_BYTES = 9 << 20  # the limit is 8 MiB
_AT_ONCE = 12


def _token(edge: Edge) -> str:
    return f"Authorization: Bearer {edge.tokens['system']}"


def _until_hung_up(edge: Edge, *pieces: bytes) -> list[int]:
    """The statuses of all answers that came until the host hung up. Raises NoAnswer."""
    with connect(edge.host.port) as client:
        said = read_to_end(client, *pieces, within_seconds=_WITHIN_SECONDS)
    return [answer.status for answer in answers_in(said)]


@attack(
    _KIND,
    how="a header line, a target, or header lines without end, a piece at a time",
    result="431 or 400, and the connection ends",
)
def endless_headers(edge: Edge) -> None:
    for start, piece in (
        (b"GET / HTTP/1.1\r\nX: ", b"x" * 4096),
        (b"GET /", b"x" * 4096),
        (b"GET / HTTP/1.1\r\n", b"X: 1\r\n" * 512),
        (b"", b"x" * 4096),
        (b"", b"\r\n" * 2048),
    ):
        statuses = _ended_while_sending(edge, start, piece)
        assert statuses in ([431], [400], []), (start, statuses)  # 408: all of it was taken


def _ended_while_sending(edge: Edge, start: bytes, piece: bytes) -> list[int]:
    """Send far more than there may be of headers; what the host answers to that."""
    pieces = _MOST_HEADER_BYTES // len(piece)
    return _until_hung_up(edge, start, *[piece] * pieces)


@attack(
    _KIND,
    how="a request whose headers stop: after a byte, within a line, before the last line end",
    result="408, and the connection ends",
)
def unfinished_headers(edge: Edge) -> None:
    whole = request("GET", "/healthz")
    with ExitStack() as ending:
        clients = [ending.enter_context(connect(edge.host.port)) for _ in range(3)]
        for client, sent in zip(clients, (whole[:1], whole[:20], whole[:-2]), strict=True):
            client.sendall(sent)
        for client in clients:
            said = read_to_end(client, within_seconds=_WITHIN_SECONDS)
            assert [each.status for each in answers_in(said)] == [408], said


@attack(
    _KIND,
    how="a connection that says nothing",
    result="it ends without a word",
)
def silent_connection(edge: Edge) -> None:
    assert _until_hung_up(edge) == []


@attack(
    _KIND,
    how="a body that stops, with `Content-Length` and in chunks, to the API, the registry and the "
    "calls between Duolog processes",
    result="408, and the connection ends",
)
def silent_body(edge: Edge) -> None:
    token, kind = _token(edge), "Content-Type: application/json"
    with ExitStack() as ending:
        clients = []
        for path in (_PUBLISH, "/registry/subjects/s/versions", "/v1/internal/call/topics"):
            for lengths, body in (
                (("Content-Length: 100",), b'{"topic":'),
                (("Transfer-Encoding: chunked",), b'9\r\n{"topic":\r\n'),
            ):
                if path.startswith("/v1/internal") and body.startswith(b"9"):
                    continue  # refused at once, since its length is not told
                client = ending.enter_context(connect(edge.host.port))
                headers = (token, kind, "Duolog-Protocol: 2", *lengths)
                client.sendall(request("POST", path, *headers) + body)
                clients.append((path, lengths, client))
        for path, lengths, client in clients:
            said = read_to_end(client, within_seconds=_WITHIN_SECONDS)
            assert [each.status for each in answers_in(said)] == [408], (path, lengths, said)


@attack(
    _KIND,
    how="a body over the limit, told by `Content-Length`",
    result="413 before the body has come",
)
def large_body_with_its_length(edge: Edge) -> None:
    for path in (_PUBLISH, _SQL, "/registry/subjects/s/versions"):
        headers = (_token(edge), "Content-Type: application/json", f"Content-Length: {1 << 40}")
        with connect(edge.host.port) as client:
            client.sendall(request("POST", path, *headers))
            assert client.recv(12) == b"HTTP/1.1 413", path


@attack(
    _KIND,
    how="a body over the limit in chunks, without `Content-Length`, and one that says to be packed",
    result="413; 400 for what is packed",
)
def large_body_without_its_length(edge: Edge) -> None:
    piece = b'"' + b"x" * ((1 << 20) - 2) + b'"'
    chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
    for path in (_PUBLISH, _SQL, "/registry/subjects/s/versions"):
        headers = (_token(edge), "Content-Type: application/json", "Transfer-Encoding: chunked")
        statuses = _until_hung_up(
            edge, request("POST", path, *headers), *[chunk] * (_BODY_BYTES >> 20), b"0\r\n\r\n"
        )
        assert statuses == [413], (path, statuses)
    packed = edge.ask(
        "POST", _PUBLISH, b"\x1f\x8b\x08", who="system", headers={"Content-Encoding": "gzip"}
    )
    assert packed.status == 400


@attack(
    _KIND,
    how="JSON 100,000 lists or objects deep, as body, as value, in a schema, in a statement",
    result="400, 413 or 422; or it is stored as it is",
)
def deep_json(edge: Edge) -> None:
    deep = 100_000
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        nested = opening * deep + b"1" + closing * deep
        messages = b'{"topic":"orders","messages":[{"value":' + nested + b"}]}"
        for path, body in (
            (_PUBLISH, nested),
            (_PUBLISH, messages),
            (_CONSUME, b'{"topic":"orders","start":' + nested + b"}"),
            (_SQL, b'{"sql":' + nested + b"}"),
            (_SQL, json.dumps({"sql": "SELECT " + "(" * 5000 + "1" + ")" * 5000}).encode()),
            ("/registry/subjects/deep/versions", nested),
            (
                "/registry/subjects/deep/versions",
                json.dumps({"schema": nested.decode()}).encode(),
            ),
        ):
            answer = edge.ask("POST", path, body, who="system")
            assert answer.status in {400, 413, 422}, (path, body[:40], answer)


@attack(
    _KIND,
    how="numbers of 100,000 digits, `1e999999`, `NaN`, `Infinity`, negative ones, where a number "
    "or a record is expected",
    result="400 or 422",
)
def huge_numbers(edge: Edge) -> None:
    for number in (b"9" * 100_000, b"-1", b"1e999999", b"NaN", b"Infinity", b"1.5", b"true"):
        for path, body in (
            (_CONSUME, b'{"topic":"orders","limit":%b}'),
            (_CONSUME, b'{"topic":"orders","partition_id":%b}'),
            (_CONSUME, b'{"topic":"orders","start":{"offset":%b}}'),
            ("/v1/api/topics/ack", b'{"topic":"orders","group_id":"g","upto_offset":%b}'),
            (_PUBLISH, b'{"topic":"orders","messages":[{"value":1,"ts":%b}]}'),
            (_PUBLISH, b'{"topic":"orders","messages":[],"writer":"w","sequence":%b}'),
            ("/registry/subjects/s/versions", b'{"schema":%b}'),
        ):
            answer = edge.ask("POST", path, body % number, who="system")
            assert answer.status in {400, 404, 422}, (path, number[:20], answer)
    long_limit = edge.sql(f"SELECT * FROM orders LIMIT {'9' * 1000}")
    assert long_limit.status == 422, long_limit


@attack(
    _KIND,
    how="a time to wait of 1e300 seconds, and one that is not a number",
    result="an answer after `topics.max_consume_timeout`; 422",
)
def endless_wait(edge: Edge) -> None:
    wanted = {"topic": "orders", "timeout_seconds": 1e300, "start": "Latest"}
    answer = edge.ask("POST", _CONSUME, wanted, who="system")
    assert (answer.status, answer.json["messages"]) == (200, [])
    body = b'{"topic":"orders","timeout_seconds":Infinity}'
    assert edge.ask("POST", _CONSUME, body, who="system").status in {400, 422}
    assert MAX_CONSUME_SECONDS < DEADLINE_SECONDS


@attack(
    _KIND,
    how="twelve bodies at once of hundreds of thousands of small values: as rows, as messages, and "
    "as a call of another Duolog",
    result="all are answered; the host takes less than 400 MB",
)
def many_values_at_once(edge: Edge) -> None:
    table = {"table": "shop.many", "op": "insert"}
    for wanted in (
        {**table, "rows": [{f"c{each}": 1 for each in range(90)}] * 4300},
        {**table, "rows": [{"c": [{"": 0}] * 48}] * 3900},
        {"topic": "many", "messages": [{"value": [1_000_000] * 90}] * 4300},
    ):
        _published_at_once(edge, _PUBLISH, json.dumps(wanted, separators=(",", ":")).encode())
    records = [{"value": {"base64": "AAAA"}}] * 40_000
    call = {"records": records, "reference": "many", "writer": None, "sequence": None}
    body = json.dumps({**call, "in_order": False}, separators=(",", ":")).encode()
    _published_at_once(edge, f"{INTERNAL}/call/publish", body, PROTOCOL)


def _published_at_once(
    edge: Edge, path: str, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    with (
        MemoryWatch(edge.host.pid, with_children=False) as memory,
        ThreadPoolExecutor(_AT_ONCE) as clients,
    ):
        asked = [
            clients.submit(edge.ask, "POST", path, body, who="system", headers=headers)
            for _ in range(_AT_ONCE)
        ]
        statuses = [each.result(10 * DEADLINE_SECONDS).status for each in asked]
    assert set(statuses) <= {200, 413, 429, 503}, statuses
    assert memory.highest_bytes < MOST_MEMORY_BYTES, (path, memory.highest_bytes, statuses)


@attack(_KIND, how="10,001 messages, and 10,001 rows, in one request", result="422; none is stored")
def too_many_messages(edge: Edge) -> None:
    offsets = "SELECT sum(next_offset) FROM system.partitions"
    before = edge.sql(offsets).json["rows"]
    for content in (
        {"topic": "orders", "messages": [{"value": 1}] * 10_001},
        {
            "table": "shop.orders",
            "op": "insert",
            "rows": [{"id": 1}] * 10_001,
            "key_columns": ["id"],
        },
    ):
        answer = edge.ask("POST", _PUBLISH, content, who="system")
        assert answer.status == 422, answer
    assert edge.sql(offsets).json["rows"] == before


@attack(
    _KIND,
    how="a record over `max_record_bytes`; 1,001 headers; a name of a header of 1,001 characters",
    result="413 or 422; none is stored",
)
def too_large_record(edge: Edge) -> None:
    for message in (
        {"value": "x" * (2 << 20)},
        {"value": 1, "headers": [{"name": "h", "value": "v"}] * 1001},
        {"value": 1, "headers": [{"name": "h" * 1001, "value": "v"}]},
    ):
        content = {"topic": "orders", "messages": [message]}
        answer = edge.ask("POST", _PUBLISH, content, who="system")
        assert answer.status in {413, 422}, answer


@attack(
    _KIND,
    how="connections beyond `serve.max_connections` that rest, wait in long polls, or ask",
    result="503 with `Retry-After`; `/healthz` is answered; all is well once they have left",
)
def too_many_connections(edge: Edge) -> None:
    wanted = {"topic": "orders", "timeout_seconds": 1e9, "start": "Latest"}
    body = json.dumps(wanted).encode()
    poll = request("POST", _CONSUME, _token(edge), body=body)
    with ExitStack() as ending:
        for number in range(MAX_CONNECTIONS):
            client = ending.enter_context(connect(edge.host.port))
            client.sendall(poll if number % 2 else b"GET")
        refused = edge.ask("POST", "/v1/api/topics/latest-offsets", {"topic": "orders"}, who="dba")
        assert refused.status == 503, refused
        assert refused.headers["retry-after"]
        assert edge.ask("GET", "/healthz").status == 200
    offsets = ("POST", "/v1/api/topics/latest-offsets", {"topic": "orders"})
    until(lambda: edge.ask(*offsets, who="dba").status == 200)


@attack(
    _KIND,
    how="thirty clients that ask for much, as JSON and as Arrow, also in headers, and take nothing",
    result="others are answered, also from the same topic; the host takes less than 400 MB",
)
def clients_that_take_nothing(edge: Edge) -> None:
    header = {"name": "h", "value": "x" * 100_000}
    for message in ({"value": "x" * 500_000}, {"value": "v", "headers": [header] * 7}):
        content = {"topic": "many", "messages": [message] * 10}
        assert edge.ask("POST", _PUBLISH, content, who="system").status == 200
    wanted = {"topic": "many", "start": "Earliest", "timeout_seconds": 0, "limit": 1_000_000}
    token = f"Authorization: Bearer {edge.tokens['dba']}"
    with MemoryWatch(edge.host.pid, with_children=False) as memory, ExitStack() as ending:
        for kind in ("application/json", "application/vnd.apache.arrow.stream"):
            for max_bytes in (1000, 8 << 20, 64 << 20):
                body = json.dumps({**wanted, "max_bytes": max_bytes}).encode()
                for _ in range(5):
                    client = ending.enter_context(connect(edge.host.port))
                    client.sendall(request("POST", _CONSUME, token, f"Accept: {kind}", body=body))
        for _ in range(5):
            assert edge.ask("GET", "/metrics", who="system").status == 200
            assert edge.ask("POST", _CONSUME, wanted, who="system").status == 200
    assert memory.highest_bytes < MOST_MEMORY_BYTES, memory.highest_bytes
    assert edge.sql("CLEAR TOPIC many").status == 200


@attack(
    _KIND,
    how="two queries without end at once; one that holds, and one that builds, more "
    "than it may; an answer of 200,000 rows",
    result="422, 503; the host answers others meanwhile",
)
def query_beyond_its_limits(edge: Edge) -> None:
    endless = "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n) SELECT count(*)"
    wide = "'" + "x" * 20 + "'"
    text = wide
    for _ in range(6):
        text = f"replace({text}, 'x', {wide})"
    for statement, codes in (
        (f"SELECT length({text})", {"QueryTooLarge", "QueryTimedOut"}),
        (_numbers(10_000_000, "ORDER BY a DESC"), {"QueryTooLarge", "QueryTimedOut"}),
        (_numbers(200_000), {"AnswerTooLarge", "QueryTimedOut"}),
    ):
        with connect(edge.host.port) as client:
            body = json.dumps({"sql": statement}).encode()
            client.sendall(request("POST", _SQL, _token(edge), body=body))
            assert edge.ask("GET", "/readyz").status == 200
            (answer,) = answers_in(read_to_end(client))
        assert answer.status == 422, (statement[:100], answer)
        assert answer.json["code"] in codes, (statement[:100], answer)
    ended: list[str] = []
    with ExitStack() as ending:
        both = [ending.enter_context(connect(edge.host.port)) for _ in range(2)]
        body = json.dumps({"sql": f"{endless} FROM n"}).encode()
        for client in both:
            client.sendall(request("POST", _SQL, _token(edge), body=body))
        for client in both:
            (answer,) = answers_in(read_to_end(client))
            ended.append(answer.json["code"])
    assert "QueryTimedOut" in ended, ended
    assert set(ended) <= {"QueryTimedOut", "TooBusy"}, ended
    until(lambda: edge.sql("SELECT 1").status == 200)


def _numbers(count: int, order: str = "") -> str:
    """A query for so many rows."""
    rows = ", ".join(f"({number})" for number in range(10))
    ten = f"(VALUES {rows})"
    power = len(str(count)) if not str(count).startswith("1") else len(str(count)) - 1
    joined = ", ".join(f"{ten} t{number}(a{number})" for number in range(power))
    terms = " + ".join(f"a{number} * {10**number}" for number in range(power))
    return f"SELECT {terms} AS a FROM {joined} {order} LIMIT {count}"


@attack(
    _KIND,
    how="a token that begins groups without end: by polls, acknowledgements, statements, and calls "
    "between Duolog processes",
    result="429 `TokenLimitReached` beyond its share, whichever way; others begin theirs",
)
def groups_without_end(edge: Edge) -> None:
    topic = "orders_of_many"
    assert edge.sql(f"CREATE TOPIC {topic} PARTITIONS 2").status == 200
    messages = [{"value": 1, "partition_id": 0}]
    published = edge.ask("POST", _PUBLISH, {"topic": topic, "messages": messages}, who="system")
    assert published.status == 200, published
    begun = 0
    while True:
        numbers = range(begun, begun + 100)
        text = "; ".join(f"CONSUME FROM {topic} GROUP 'many-{each}' LIMIT 1" for each in numbers)
        answer = edge.sql(text, who="service")
        if answer.status != 200:
            break
        begun += 100
        assert begun <= 10 * MAX_STORED_GROUPS_OF_TOKEN
    assert (answer.status, answer.json["code"]) == (429, "TokenLimitReached"), answer

    place = {"topic": topic, "partition_id": 0}
    called = {"reference": topic, "partition": 0, "upto_offset": 0}
    for path, content in (
        (_CONSUME, {"topic": topic, "group_id": "many-member", "timeout_seconds": 0}),
        (_CONSUME, {**place, "group_id": "many-reader", "timeout_seconds": 0}),
        ("/v1/api/topics/ack", {**place, "group_id": "many-acked", "upto_offset": 0}),
        (f"{INTERNAL}/call/ack", {**called, "group": "many-called", "side": "native"}),
        (f"{INTERNAL}/call/ack", {**called, "group": "many-mirrored", "side": "kafka"}),
    ):
        headers = PROTOCOL if path.startswith(INTERNAL) else None
        refused = edge.ask("POST", path, content, who="service", headers=headers)
        assert "TokenLimitReached" in refused.text, (path, refused)
        allowed = edge.ask("POST", path, content, who="dba", headers=headers)
        assert allowed.status == 200, (path, allowed)
    assert edge.sql(f"DROP TOPIC {topic}").status == 200  # its groups go with it


@attack(
    _KIND,
    how="schemas of 1 MB without end, and a list of all schemas",
    result="422 with code 42205 beyond `max_schemas_bytes`; a list ends at 8 MiB",
)
def schemas_without_end(edge: Edge) -> None:
    with MemoryWatch(edge.host.pid, with_children=False) as memory:
        for number in range(2 * MAX_SCHEMAS_BYTES >> 20):
            schema = {"type": "record", "name": f"L{number}", "doc": "x" * 1_000_000, "fields": []}
            path = f"/registry/subjects/large-{number}/versions"
            answer = edge.ask("POST", path, {"schema": json.dumps(schema)}, who="service")
            if answer.status != 200:
                break
        assert (answer.status, answer.json["error_code"]) == (422, 42205), answer
        found = edge.ask("GET", "/registry/schemas", who="service")
        assert found.status == 200
        assert len(found.body) < 9 << 20
    assert memory.highest_bytes < MOST_MEMORY_BYTES, memory.highest_bytes
    for gone in range(number):
        for query in ("", "?permanent=true"):
            path = f"/registry/subjects/large-{gone}{query}"
            assert edge.ask("DELETE", path, who="system").status == 200, path
    small = {"schema": '{"type":"fixed","name":"Small","size":1}'}
    path = "/registry/subjects/large-0/versions"
    assert edge.ask("POST", path, small, who="service").status == 200


@attack(
    _KIND,
    how="a route whose filter makes a text of 800 MB of one of 8 KB, and one whose pattern takes "
    "seconds for a row",
    result="422 for the rows, before the text is made; 422 for the route",
)
def filters_beyond_their_limits(edge: Edge) -> None:
    tenfold = "replace(" * 5 + "a" + ", 'a', 'aaaaaaaaaa')" * 5
    wide = f"concat({', '.join(['upper(a)'] * 200)})"
    route = "ALTER TOPIC orders_filtered ADD SOURCE shop.filtered ON INSERT WHERE"
    assert edge.sql("CREATE TOPIC orders_filtered", who="dba").status == 200
    for text, letters in ((tenfold, 8000), (wide, 1_000_000)):
        assert edge.sql(f"{route} length({text}) > 5", who="dba").status == 200
        rows = {"table": "shop.filtered", "op": "insert", "key_columns": ["id"]}
        with MemoryWatch(edge.host.pid, with_children=False) as memory:
            content = {**rows, "rows": [{"id": 1, "a": "a" * letters}]}
            answer = edge.ask("POST", _PUBLISH, content, who="dba")
        assert (answer.status, answer.json["code"]) == (422, "InvalidRows"), answer
        assert memory.highest_bytes < MOST_MEMORY_BYTES, memory.highest_bytes
        assert edge.sql("ALTER TOPIC orders_filtered DROP SOURCE shop.filtered").status == 200
    slow = edge.sql(f"{route} a ILIKE '%{'a%' * 2000}b'", who="dba")
    assert (slow.status, slow.json["code"]) == (422, "InvalidSql"), slow.text[:200]
    assert edge.sql("DROP TOPIC orders_filtered").status == 200


@attack(
    _KIND,
    how="a statement of 1 MB, 10,000 statements, 100,000 values in a list",
    result="an answer: 200, 413, 422 or 503",
)
def long_statement(edge: Edge) -> None:
    for text in (
        "SELECT " + " + ".join(["1"] * 2000),
        "SELECT '" + "x" * (1 << 20) + "' IS NULL",
        "; ".join(["CONSUME FROM orders"] * 10_000),
        "SELECT 1 IN (" + ",".join(["1"] * 100_000) + ")",
        "SELECT " + "-" * 100_000 + "1",
        "SELECT " + "NOT " * 50_000 + "TRUE",
    ):
        answer = edge.sql(text, within_seconds=DEADLINE_SECONDS)
        assert answer.status in {200, 413, 422, 503}, (text[:60], answer)


@attack(
    _KIND,
    how="100 requests in one piece; an upgrade to a web socket or to HTTP/2",
    result="each is answered once, in order; the upgrade is left out",
)
def misused_connection(edge: Edge) -> None:
    many = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 99 + request("GET", "/healthz")
    answers = edge.host.send(many)
    assert [answer.status for answer in answers] == [200] * 100
    upgrade = ("Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    (answer,) = edge.host.send(request("GET", "/metrics", *upgrade))
    assert answer.status == 401
    (answer,) = edge.host.send(request("GET", "/healthz", "Upgrade: h2c", "HTTP2-Settings: AAA"))
    assert answer.status == 200


_STRANGE: tuple[Any, ...] = (None, True, -1, 2**63, 0.5, "", "\u0000", [], {}, [[]], {"x": [1]})
_RIGHT = {
    "reference": "orders_strange", "partition": 0, "group": "mine-3", "offset": 0, "upto_offset": 0,
    "position": 0, "timeout_seconds": 0, "to_offset": 0, "by": "x", "name": "orders_strange2",
}  # fmt: skip


@attack(
    _KIND,
    how="each argument of each call between Duolog processes as something else: nothing, a list, "
    "an object, a number beyond 64 bits",
    result="200, 4xx; never a failure that has no name",
)
def strange_arguments(edge: Edge) -> None:
    for name, call in CALLS.items():
        assert edge.sql("CREATE TOPIC IF NOT EXISTS orders_strange").status == 200
        right = {parameter: _RIGHT.get(parameter) for parameter in call.parameters}
        for parameter in call.parameters:
            for strange in _STRANGE:
                content = {**right, parameter: strange}
                answer = edge.ask(
                    "POST", f"{INTERNAL}/call/{name}", content, who="system", headers=PROTOCOL
                )
                assert answer.status < 500 or answer.status == 503, (name, content, answer)
                assert "HostFailed" not in answer.text, (name, content, answer)
    assert edge.salaries_are_untouched()
