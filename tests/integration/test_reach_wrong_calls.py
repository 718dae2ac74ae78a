"""Whatever comes in the place of an argument, a host refuses it by name and goes on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from duolog.log.model import Record
from duolog.reach.calls import CALLS
from duolog.reach.protocol import PREFIX, PROTOCOL_HEADER, VERSION
from tests.support.host_server import TOKEN, Host

WRONG: list[Any] = [
    None, True, -1, 0, 2**70, 1.5, float("inf"), "", "x", "\0", "orders", [], {}, [1], [None], [[]],
    {"a": 1}, {"from": "Latest"}, {"base64": "x"}, ["orders"],
]  # fmt: skip
RIGHT: dict[str, Any] = {
    "reference": "orders", "partition": 0, "group": None, "to_offset": 0, "by": "x", "position": 0,
    "upto_offset": 0, "timeout_seconds": 0,
}  # fmt: skip
FETCH = {"reference": "orders", "partition": 0, "offset": 0, "max_records": 10, "max_bytes": 1000}


class Asking:
    def __init__(self, host: Host) -> None:
        self.host = host
        self._connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {PROTOCOL_HEADER: str(VERSION), "Authorization": f"Bearer {TOKEN}"}
        content = None if body is None else json.dumps(body)
        self._connection.request(method, f"{PREFIX}{path}", content, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with Host(tmp_path_factory.mktemp("wrong") / "log") as host:
        host.log.create_topic("orders")
        host.log.publish("orders", Record(b"v"))
        asking = Asking(host)
        yield asking
        asking.close()


def bodies(name: str) -> Iterator[Any]:
    yield from ({}, [], 1, "x")
    parameters = CALLS[name].parameters
    for wrong in WRONG:
        yield dict.fromkeys(parameters, wrong)
        for parameter in parameters:
            yield {**dict.fromkeys(parameters, "orders"), parameter: wrong}
            yield {**dict.fromkeys(parameters, 0), parameter: wrong}
            yield {**dict.fromkeys(parameters), parameter: wrong}
            yield {**{each: RIGHT.get(each) for each in parameters}, parameter: wrong}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_of_a_call_is_too_strange(asking: Asking, name: str) -> None:
    for body in bodies(name):
        status, said = asking.ask("POST", f"/call/{name}", body)
        assert status < 500 or json.loads(said)["code"] != "HostFailed", (body, said)


def test_no_argument_of_a_fetch_is_too_strange(asking: Asking) -> None:
    for wrong in WRONG:
        for name in (*FETCH, "held_topic_id", "held_upto", "skip_damaged"):
            for held in ({}, {"held_topic_id": 1, "held_upto": 0}):
                arguments = quote(json.dumps({**FETCH, **held, name: wrong}))
                status, said = asking.ask("GET", f"/fetch?arguments={arguments}")
                assert status < 500, (name, wrong, held, said)


def test_no_wait_is_too_strange(asking: Asking) -> None:
    body: dict[str, Any]
    for wrong in WRONG:
        for body in (
            {"seconds": wrong if not _is_long(wrong) else 0, "positions": []},
            {"seconds": 0, "positions": wrong},
            {"seconds": 0, "positions": [wrong]},
            {
                "seconds": 0,
                "positions": [[wrong, 0, 0], ["orders", wrong, 0], ["orders", 0, wrong]],
            },
            {"seconds": 0, "positions_stored": wrong},
        ):
            status, said = asking.ask("POST", "/wait", body)
            assert status < 500, (body, said)


def _is_long(seconds: Any) -> bool:
    """Whether a host would wait, which is no mistake."""
    return isinstance(seconds, int | float) and seconds > 0
