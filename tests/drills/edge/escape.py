"""Attacks that leave what a request is for: by SQL to files and settings, by names to paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.drills.edge.hosting import SECRET, Edge
from tests.drills.edge.requests import INTERNAL
from tests.drills.edge.table import attack
from tests.drills.edge.wire import request

_KIND = "escape"
_TOPICS = "/v1/api/topics"


def _bait(edge: Edge) -> Path:
    """A folder with a file that no query may read, and where none may write."""
    folder = edge.folder / "bait"
    folder.mkdir(exist_ok=True)
    (folder / "data.csv").write_text(f"a,b\n1,{SECRET}\n")
    (folder / "data.json").write_text(json.dumps({"a": SECRET}))
    return folder


def _files(folder: Path) -> set[str]:
    """Every file of the drill, but for those that the host's database makes and the journals."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if "db" not in path.parts and "__pycache__" not in path.parts
    }


_FILE_QUERIES = (
    "SELECT * FROM '{bait}/data.csv'",
    'SELECT * FROM "{bait}/data.csv"',
    "SELECT * FROM '{bait}/'",
    "SELECT * FROM 'file://{bait}/data.csv'",
    'SELECT * FROM "file://{bait}/data.csv"',
    "SELECT * FROM 'bait/data.csv'",
    "SELECT * FROM read_csv('{bait}/data.csv')",
    "SELECT * FROM read_parquet('{bait}/data.csv')",
    "SELECT * FROM read_json('{bait}/data.json')",
    "SELECT * FROM read_avro('{bait}/data.csv')",
    "SELECT * FROM read_text('{bait}/data.csv')",
    "SELECT * FROM csv_scan('{bait}/data.csv')",
    "SELECT * FROM parquet_scan('{bait}/data.csv')",
    "SELECT * FROM parquet_metadata('{bait}/data.csv')",
    "SELECT * FROM metadata_cache()",
    "SELECT * FROM list_files_cache()",
    "SELECT * FROM glob('{bait}/*')",
    "SELECT read_text('{bait}/data.csv')",
    "SELECT pg_read_file('{bait}/data.csv')",
    "SELECT load_file('{bait}/data.csv')",
    "SELECT * FROM 'http://127.0.0.1:{port}/healthz'",
    "SELECT * FROM 's3://bucket/data.csv'",
    "SELECT * FROM '/proc/self/environ'",
    "SELECT * FROM '/etc/passwd'",
    "WITH x AS (SELECT * FROM '{bait}/data.csv') SELECT * FROM x",
)


@attack(
    _KIND,
    how="queries that name a file, a folder, a url, or a function that reads one (`read_csv`, "
    "`read_parquet`, `parquet_metadata`, `glob`)",
    result="404 or 422; nothing is read",
)
def queries_that_read_files(edge: Edge) -> None:
    bait = _bait(edge)
    for text in _FILE_QUERIES:
        for who in ("system", "for orders"):
            answer = edge.sql(text.format(bait=bait, port=edge.host.port), who)
            assert answer.status in {403, 404, 422}, (text, answer)
            assert SECRET not in answer.text, (text, answer)
            assert "root:" not in answer.text, (text, answer)


_WRITING = (
    "COPY orders TO '{bait}/out.csv'",
    "COPY (SELECT 1) TO '{bait}/out.parquet' STORED AS PARQUET",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{bait}/data.csv'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE VIEW x AS SELECT * FROM salaries",
    "CREATE OR REPLACE VIEW orders AS SELECT 1",
    "CREATE SCHEMA x",
    "CREATE DATABASE x",
    "DROP TABLE orders",
    "DROP SCHEMA topics",
    "INSERT INTO orders VALUES (1)",
    "UPDATE orders SET value = 'x'",
    "DELETE FROM orders",
    "TRUNCATE TABLE orders",
    "MERGE INTO orders USING orders o ON true WHEN MATCHED THEN DELETE",
    "SELECT * INTO x FROM orders",
    "SELECT 1 INTO OUTFILE '{bait}/out.csv'",
    "WITH x AS (DELETE FROM orders) SELECT * FROM x",
    "WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x",
    "ATTACH '{bait}/data.csv' AS x",
    "EXPORT DATABASE '{bait}'",
    "VACUUM",
    "EXPLAIN ANALYZE COPY orders TO '{bait}/out.csv'",
    "EXPLAIN COPY orders TO '{bait}/out.csv'",
    "SELECT 1; COPY orders TO '{bait}/out.csv'",
    "SELECT 1 /* ; */ ; /* */ COPY orders TO '{bait}/out.csv'",
)


@attack(
    _KIND,
    how="statements that write, define or remove outside of the log's own (`COPY`, `CREATE "
    "EXTERNAL TABLE`, `INSERT`, `ATTACH`), alone, in a query, behind another",
    result="422; nothing is written",
)
def statements_that_write(edge: Edge) -> None:
    bait = _bait(edge)
    before = _files(bait)
    for text in _WRITING:
        answer = edge.sql(text.format(bait=bait))
        assert answer.status in {404, 422}, (text, answer)
    assert _files(bait) == before
    assert edge.sql("SELECT count(*) > 0 FROM orders").json["rows"] in ([[True]], [[False]])
    assert edge.salaries_are_untouched()


@attack(
    _KIND,
    how="`SET`, `RESET`, `SHOW`, `DESCRIBE`, `PREPARE`, `CREATE FUNCTION`, `LOAD`, `CALL`; "
    "`information_schema`, `pg_catalog`",
    result="404 or 422",
)
def settings_of_the_engine(edge: Edge) -> None:
    for text in (
        "SET datafusion.execution.batch_size = 1",
        "SET datafusion.catalog.information_schema = true",
        "SET memory_limit = '100GB'",
        "RESET datafusion.execution.batch_size",
        "SHOW ALL",
        "SHOW TABLES",
        "SHOW FUNCTIONS",
        "DESCRIBE orders",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE p",
        "BEGIN",
        "USE x",
        "LOAD 'x.so'",
        "INSTALL httpfs",
        "CALL x()",
        "PRAGMA version",
        "GRANT ALL ON orders TO x",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE FUNCTION f AS 'os.system' USING JAR 'x.jar'",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM information_schema.df_settings",
        "SELECT * FROM information_schema.routines",
        "SELECT * FROM duolog.information_schema.tables",
        "SELECT * FROM datafusion.public.orders",
        "SELECT * FROM pg_catalog.pg_tables",
        "SELECT current_setting('x')",
        "SELECT py_eval('1')",
        "SELECT system('id')",
    ):
        for who in ("system", "for orders"):
            answer = edge.sql(text, who)
            assert answer.status in {403, 404, 422}, (text, who, answer)
            assert who == "system" or "salaries" not in answer.text, (text, answer)


@attack(
    _KIND,
    how="functions that build a large value of small ones (`repeat`, `lpad`, `range`, "
    "`generate_series`)",
    result="422, or 404 where one is asked as a table",
)
def functions_that_grow(edge: Edge) -> None:
    for text in (
        "SELECT repeat('x', 1000000000)",
        "SELECT lpad('x', 1000000000, 'y')",
        "SELECT rpad('x', 1000000000, 'y')",
        "SELECT range(0, 1000000000)",
        "SELECT generate_series(0, 1000000000)",
        "SELECT * FROM generate_series(0, 1000000000)",
        "SELECT * FROM range(0, 1000000000)",
        "SELECT array_repeat(1, 1000000000)",
        "SELECT array_resize(make_array(1), 1000000000, 1)",
        "SELECT list_repeat(1, 1000000000)",
    ):
        answer = edge.sql(text)
        assert answer.status in {404, 422}, (text, answer)


_PARTS = (
    "../secret",
    "../owner.lock",
    "../../tokens",
    "/etc/passwd",
    "..",
    ".",
    "",
    f"{'0' * 24}/0/../../../secret",
    f"{'0' * 24}/../../secret/{'0' * 32}.part",
    f"{'0' * 24}/0/{'0' * 32}.part/../../../../secret",
    f"../staging/{'0' * 24}/0/{'0' * 32}.part",
    f"{'0' * 24}/0/{'0' * 32}.par\nt",
    f"{'0' * 24}/0/{'0' * 32}.part\x00.txt",
    f"{'0' * 24}\\0\\{'0' * 32}.part",
    f"{'0' * 24}/00/{'0' * 32}.part",
    f"{'A' * 24}/0/{'0' * 32}.part",
)


@attack(
    _KIND,
    how="names of uploaded parts with `..`, `%2e`, `%2f`, `%5c`, `%00`, absolute ones, to read, "
    "write and remove",
    result="400, 404 or 422; no file outside of `staging/` is read or changed",
)
def paths_in_names_of_parts(edge: Edge) -> None:
    secret = (edge.log_folder / "secret").read_bytes()
    before = _files(edge.folder)
    token = f"Authorization: Bearer {edge.tokens['system']}"
    for name in _PARTS:
        spellings = {name.replace("\n", "%0a").replace("\x00", "%00"), quote(name, safe=""),
                     quote(name, safe="/").replace(".", "%2e")}  # fmt: skip
        for spelling in sorted(spellings):
            for method, body in (("GET", b""), ("DELETE", b""), ("PUT", b"x")):
                crc = "Duolog-Crc32: 2363233923"  # of x
                sent = request(
                    method, f"{INTERNAL}/parts/{spelling}", token, crc, "Duolog-Protocol: 2",
                    body=body,
                )  # fmt: skip
                for answer in edge.host.send(sent):
                    assert answer.status in {400, 404, 405, 422}, (method, spelling, answer)
                    assert secret.strip() not in answer.body, (method, spelling)
    assert (edge.log_folder / "secret").read_bytes() == secret
    assert _files(edge.folder) == before


_NAMES = (
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "%2e%2e%2f",
    "..\\..\\x",
    "C:\\x",
    "x'; DROP TOPIC orders; --",
    'x"; DROP TOPIC orders; --',
    "x\\'; DROP TOPIC orders; --",
    "*/ DROP TOPIC orders /*",
    "$(touch bait/pwned)",
    "`touch bait/pwned`",
    "| touch bait/pwned",
    "${HOME}",
    "%s%n{}{0.__class__}",
)


@attack(
    _KIND,
    how="names of topics, groups, tables, subjects and writers with paths, quotes, comments, shell "
    "and format signs",
    result="422, 404; or the name is kept as it is. No file is made, no statement is done",
)
def names_that_are_paths_or_statements(edge: Edge) -> None:
    _bait(edge)
    before = _files(edge.folder)
    for name in _NAMES:
        quoted, text = name.replace('"', '""'), name.replace("'", "''")
        for statement in (
            f'SELECT * FROM "{quoted}"',
            f'CONSUME FROM "{quoted}"',
            f'CREATE TOPIC "{quoted}"',
            f'DROP TOPIC "{quoted}"',
            f"CREATE TOPIC orders_made2 ALIAS '{text}'",
        ):
            answer = edge.sql(statement)
            assert answer.status in {404, 422}, (statement, answer)
        for content in _naming(name):
            answer = edge.ask("POST", f"{_TOPICS}/{content.pop('path')}", content, who="system")
            assert answer.status in {200, 404, 409, 422}, (name, content, answer)
        path = f"/registry/subjects/{quote(name, safe='')}/versions"
        answer = edge.ask("POST", path, {"schema": '"string"'}, who="system")
        assert answer.status in {200, 404, 422}, (name, answer)
        if answer.status == 200:
            assert name in edge.ask("GET", "/registry/subjects", who="system").json
            gone = edge.ask("DELETE", path.removesuffix("/versions"), who="system")
            assert gone.status == 200, (name, gone)
    assert _files(edge.folder) == before
    assert edge.sql("SELECT * FROM orders LIMIT 0").status == 200


def _naming(name: str) -> tuple[dict[str, Any], ...]:
    """Requests that name a topic, a group, a writer and a table so."""
    message = {"topic": "orders", "messages": [{"value": 1, "partition_id": 1}]}
    rows = {"op": "insert", "rows": [{"id": 1}], "key_columns": ["id"]}
    return (
        {"path": "latest-offsets", "topic": name},
        {"path": "ack", "topic": "orders", "group_id": name, "upto_offset": 0, "partition_id": 0},
        {"path": "publish", **message, "writer": name, "sequence": 0},
        {"path": "publish", **rows, "table": name},
    )


@attack(
    _KIND,
    how="control characters, line ends, NUL and halves of pairs in names, values of headers and "
    "`X-Request-Id`",
    result="400, 404 or 422; no line of an answer or of the journal is made by them",
)
def control_characters(edge: Edge) -> None:
    for character in ("\x00", "\r\nSet-Cookie: x=1\r\n", "\n", "\x1b[2J", "\x7f", "\ud800"):
        name = f"orders{character}"
        for content in _naming(name):
            path = f"{_TOPICS}/{content.pop('path')}"
            answer = edge.ask("POST", path, content, who="system")
            assert answer.status in {400, 404, 422}, (path, content, answer)
            assert "set-cookie" not in answer.headers, answer
            assert character.encode("utf-8", "surrogatepass") not in answer.body, answer
    for line in ("X-Request-Id: a\x1b[2Jb", "X-Request-Id: " + "x" * 500, "X-Request-Id: é b"):
        (answer,) = edge.host.send(request("GET", "/healthz", line))
        assert answer.status in {200, 400}, (line, answer)
        assert answer.headers.get("x-request-id", "").isalnum() or answer.status == 400, answer
    for line in edge.host.said.read_text().splitlines():
        assert json.loads(line)["event"], line


@attack(
    _KIND,
    how="schemas of other kinds, with references to files and urls, or 1,000 names deep",
    result="200 for what is Avro, 422 for all else; nothing is fetched",
)
def schemas_that_lead_elsewhere(edge: Edge) -> None:
    deep = '{"type":"array","items":' * 1000 + '"int"' + "}" * 1000
    path = "/registry/subjects/elsewhere/versions"
    schemas: list[dict[str, Any]] = [{"schema": deep}]
    for schema, more in (
        ({"$ref": "file:///etc/passwd"}, {"schemaType": "JSON"}),
        ({"$ref": f"{edge.host.url}/healthz"}, {"schemaType": "JSON"}),
        ('import "/etc/passwd";', {"schemaType": "PROTOBUF"}),
        ({"type": "record", "name": "../x", "fields": []}, {}),
        ({"type": "../../etc/passwd"}, {}),
        ("int", {"references": [{"name": "x", "subject": "../../etc", "version": 1}]}),
    ):
        schemas.append({"schema": json.dumps(schema), **more})
    for content in schemas:
        answer = edge.ask("POST", path, content, who="system")
        assert answer.status in {200, 404, 422}, (content["schema"][:100], answer)
        assert "root:" not in answer.text, answer
