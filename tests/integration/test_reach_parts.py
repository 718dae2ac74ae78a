"""Staged parts over the wire: whole or not at all, under their own names and nowhere else."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from duolog.errors import DamagedPart, DiskFull, InvalidRequest, RecordTooLarge
from duolog.log.access import LogAccess
from duolog.log.model import Record, Topic
from duolog.log.options import LogOptions
from duolog.log.part import Part, PartBuilder
from duolog.log.staging import staged_name
from duolog.reach import RemoteOptions, reach
from duolog.reach.protocol import VERSION
from tests.support.host_server import TOKEN, Host
from tests.support.records import BATCH, STREAM, part_of, record_batch

HASH = "0123456789abcdef01234567"
UUID = "f" * 32
NAME = f"{HASH}/3/{UUID}.part"
MAX_PART_BYTES = 1 << 20
Answer = namedtuple("Answer", "status code")  # noqa: PYI024 - for tests


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "log", max_part_bytes=MAX_PART_BYTES, max_body_bytes=1 << 20) as host:
        yield host


@pytest.fixture
def remote(host: Host) -> Iterator[LogAccess]:
    with reach(url=host.url, token=TOKEN, remote=RemoteOptions(deadline_seconds=10)) as log:
        yield log


@pytest.fixture
def topic(host: Host) -> Topic:
    return host.log.create_topic("orders")


def ask(
    host: Host, method: str, path: str, body: bytes | None = None, **headers: str | None
) -> Answer:
    """One request as it is, with all that a client says of itself."""
    connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=30)
    said = {"Duolog-Protocol": str(VERSION), "Authorization": f"Bearer {TOKEN}"}
    for name, value in headers.items():
        if value is not None:
            said[name.replace("_", "-")] = value
    connection.request(method, path, body, said)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return Answer(answer.status, json.loads(content).get("code") if content else None)


def upload(host: Host, name: str, body: bytes = b"body", crc32: int | None = None) -> Answer:
    summed = zlib.crc32(body) if crc32 is None else crc32
    return ask(host, "PUT", f"/v1/internal/parts/{name}", body, Duolog_Crc32=str(summed))


def staged_files(host: Host) -> list[str]:
    staging = host.log.folder / "staging"
    return sorted(
        path.relative_to(staging).as_posix() for path in staging.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(
    "name",
    [
        "x.part",
        f"{HASH}/3/{UUID}",
        f"{HASH}/3/../3/{UUID}.part",
        f"../{HASH}/3/{UUID}.part",
        f"/{HASH}/3/{UUID}.part",
        f"/etc/{HASH}/3/{UUID}.part",
        f"{HASH}/-1/{UUID}.part",
        f"{HASH}/03/{UUID}.part",
        f"{HASH}/{'9' * 30}/{UUID}.part",
        f"{HASH.upper()}/3/{UUID}.part",
        f"{HASH}/3/{UUID}.part%00",
        f"{HASH}%2F..%2F..%2Fdb/3/{UUID}.part",
    ],
)
def test_other_names_are_refused(host: Host, topic: Topic, remote: LogAccess, name: str) -> None:
    assert upload(host, name) == (400, "InvalidRequest")
    for method in ("GET", "DELETE"):
        assert ask(host, method, f"/v1/internal/parts/{name}") == (400, "InvalidRequest")
    lying = replace(part_of(topic, {0: [b"a"]}), body=None, path=name)
    with pytest.raises(InvalidRequest):
        remote.append(STREAM, 0, [lying])
    assert staged_files(host) == []


def test_links_are_not_followed(host: Host, topic: Topic, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"precious")
    staging = host.log.folder / "staging"
    staging.mkdir()
    (staging / HASH).symlink_to(outside)
    assert upload(host, NAME).code == "InvalidRequest"
    (staging / HASH).unlink()
    (staging / HASH).mkdir()
    (staging / HASH / "3").symlink_to(outside)
    assert upload(host, NAME).code == "InvalidRequest"
    (staging / HASH / "3").unlink()
    (staging / HASH / "3").mkdir()
    (staging / NAME).symlink_to(outside / "f")
    for method in ("GET", "DELETE"):
        assert ask(host, method, f"/v1/internal/parts/{NAME}").code == "InvalidRequest"
    assert sorted(path.name for path in outside.iterdir()) == ["f"]


def test_only_parts_of_the_epoch_itself_are_taken(
    host: Host, topic: Topic, remote: LogAccess, tmp_path: Path
) -> None:
    for place in (remote.staging(BATCH, 0), remote.staging(STREAM, 7)):
        part = part_of(topic, {0: [b"a"]}, folder=place)
        with pytest.raises(InvalidRequest, match="another writer or epoch"):
            remote.append(STREAM, 0, [part])
    elsewhere = part_of(topic, {0: [b"a"]}, folder=tmp_path / "elsewhere")
    with reach(host.log.folder) as hosted:
        for log in (remote, hosted):
            with pytest.raises(InvalidRequest, match=r"no name of a staged part|was not staged in"):
                log.append(STREAM, 0, [elsewhere])
        folder = host.log.folder
        local = part_of(topic, {0: [b"a"]}, folder=hosted.staging(STREAM, 0))
        assert staged_name(folder, local.path or "").endswith(".part")
        assert hosted.append(STREAM, 0, [local]).ranges[0].count == 1


def test_a_damaged_upload_is_not_kept(host: Host) -> None:
    assert upload(host, NAME, b"body", crc32=1) == (422, "DamagedPart")
    assert staged_files(host) == []
    for crc32 in (None, "", "x", "-1", "99999999999"):
        assert (
            ask(host, "PUT", f"/v1/internal/parts/{NAME}", b"b", Duolog_Crc32=crc32).code
            == "InvalidRequest"
        )
    assert staged_files(host) == []


def test_an_upload_without_a_length_is_refused(host: Host) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=30)
    headers = {
        "Duolog-Protocol": str(VERSION),
        "Authorization": f"Bearer {TOKEN}",
        "Duolog-Crc32": "1",
    }
    connection.request("PUT", f"/v1/internal/parts/{NAME}", iter([b"a", b"b"]), headers)
    assert json.loads(connection.getresponse().read())["code"] == "InvalidRequest"
    connection.close()


def test_the_same_upload_again_is_fine_and_another_is_not(host: Host) -> None:
    assert upload(host, NAME).status == 200
    assert upload(host, NAME).status == 200
    assert upload(host, NAME, b"another") == (422, "DamagedPart")
    assert (host.log.folder / "staging" / NAME).read_bytes() == b"body"
    with ThreadPoolExecutor(8) as pool:
        other = NAME.replace("f.part", "e.part")
        statuses = pool.map(lambda _: upload(host, other, b"x" * 500_000).status, range(8))
    assert set(statuses) == {200}
    assert staged_files(host) == sorted([NAME, other])


def test_too_large_a_part_is_refused_before_it_is_sent_whole(
    host: Host, topic: Topic, remote: LogAccess
) -> None:
    content = [b"%04d" % n * 50_000 for n in range(10)]
    assert upload(host, NAME, b"x" * (MAX_PART_BYTES + 1)).code == "InvalidRequest"
    file = remote.staging(STREAM, 0).begin()
    for value in content:
        file.write(value)
    with pytest.raises(InvalidRequest, match="limit"):
        file.finish()
    file.abort()
    assert staged_files(host) == []


def test_too_large_a_request_is_refused(host: Host, remote: LogAccess, topic: Topic) -> None:
    with pytest.raises(RecordTooLarge, match="fewer records"):
        remote.publish("orders", [Record(b"x" * 500_000) for _ in range(3)])
    assert host.log.offsets("orders")[0].next_offset == 0


def test_a_full_disk_at_the_host_has_a_name(tmp_path: Path) -> None:
    options = LogOptions(min_free_bytes=0)
    with Host(tmp_path / "log", options=options) as host:
        topic = host.log.create_topic("orders")
        object.__setattr__(options, "min_free_bytes", 1 << 60)
        with reach(url=host.url, token=TOKEN) as log:
            builder = PartBuilder(log.staging(STREAM, 0))
            builder.add(topic, 0, record_batch([b"a"]))
            with pytest.raises(DiskFull, match="staged"):
                builder.finish()
            builder.abort()
        assert staged_files(host) == []


def test_a_client_that_leaves_in_mid_upload_leaves_nothing(host: Host) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=30)
    connection.putrequest("PUT", f"/v1/internal/parts/{NAME}")
    for name, value in (
        ("Duolog-Protocol", str(VERSION)), ("Authorization", f"Bearer {TOKEN}"),
        ("Content-Length", "1000000"), ("Duolog-Crc32", "1"),
    ):  # fmt: skip
        connection.putheader(name, value)
    connection.endheaders(b"x" * 300_000)
    folder = host.log.folder / "staging" / HASH / "3"
    until(lambda: folder.is_dir() and any(folder.iterdir()))
    connection.close()
    until(lambda: not any(folder.iterdir()))


def until(condition: Any) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + 30
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.01)


@pytest.mark.parametrize(
    "message",
    ["", "{}", "[]", '{"v": 9}', '{"v": 1}', '{"v":1,"batches":[],"topics":[],"length":"x"}'],
)
def test_a_message_that_no_task_wrote_is_refused(host: Host, message: str) -> None:
    arguments: dict[str, Any] = {
        "writer": {"mode": "stream", "name": "q", "target": "t"},
        "epoch": 0,
        "parts": [message],
        "begin_anywhere": False,
        "at_ms": None,
        "note": "",
    }
    answer = ask(host, "POST", "/v1/internal/call/append", json.dumps(arguments).encode(), Host="h")
    assert answer.code in {"DamagedPart", "UnsupportedFormat"}
    assert host.log.last_epoch(STREAM) is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("call/no_such", b"{}"),
        ("call/close", b"{}"),
        ("call/backup", b'{"folder": "/tmp/x"}'),
        ("call/topic", b""),
        ("call/topic", b"[]"),
        ("call/topic", b"{"),
        ("call/topic", b"[" * 100_000),
        ("call/topic", b"{}"),
        ("call/topic", b'{"reference": "a", "more": 1}'),
        ("call/append", b'{"writer": 1}'),
        ("call/publish", b'{"reference":"o","records":7,"writer":null,"sequence":null}'),
        ("wait", b"{}"),
        ("wait", b'{"positions": [[1]], "seconds": 1}'),
        ("wait", b'{"positions": [[[1], 0, 0]], "seconds": 1}'),
        ("wait", b'{"positions": [], "seconds": "x"}'),
        ("wait", b'{"positions_stored": "x", "seconds": 1}'),
        ("wait", b'{"positions_stored": 1}'),
    ],
)
def test_requests_that_no_client_makes_are_refused_by_name(
    host: Host, path: str, body: bytes
) -> None:
    answer = ask(host, "POST", f"/v1/internal/{path}", body)
    assert (answer.status, answer.code) == (400, "InvalidRequest")


@pytest.mark.parametrize("arguments", ["", "7", "{", '{"reference": "o"}', '{"close": 1}'])
def test_fetches_that_no_client_makes_are_refused_by_name(host: Host, arguments: str) -> None:
    answer = ask(host, "GET", f"/v1/internal/fetch?arguments={quote(arguments)}")
    assert (answer.status, answer.code) == (400, "InvalidRequest")


def test_a_message_with_wrong_types_is_no_damage_to_the_host(host: Host, topic: Topic) -> None:
    good = part_of(topic, {0: [b"a"]})
    for field, value in (("length", "x"), ("crc32", None), ("batches", [{}]), ("body", 7)):
        fields = {**json.loads(good.message()), field: value}
        with pytest.raises(DamagedPart):
            host.log.append(STREAM, 0, [Part.from_message(json.dumps(fields).encode())])
    assert host.log.append(STREAM, 0, [good]).ranges[0].count == 1
