"""The demo's last part: a host owns the log, and others use it meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from duolog.cli.story import Story
from duolog.errors import DuologError, HostFailed
from duolog.log.model import TopicSettings

TOPIC = "tickets"
_GROUP = "desk"
_WAIT_SECONDS = 10
_DEADLINE_SECONDS = 30.0


def use_through_host(story: Story, folder: Path) -> None:
    from duolog.reach import reach
    from duolog.server.run import check_installed

    story.step("Many at once: a host owns the log")
    try:
        check_installed(("fastapi", "uvicorn"), "The host", "bridge")
    except DuologError as missing:
        story.tell(f"Left out: {missing}")
        return
    with _host(folder) as (host, url):
        story.tell(f"`duolog serve` answers on {url}.")
        with reach(folder) as log, ThreadPoolExecutor(1) as waiting:
            log.create_topic(TOPIC, TopicSettings(partitions=1))
            poll = waiting.submit(
                _ask,
                url,
                "consume",
                {"topic": TOPIC, "group_id": _GROUP, "timeout_seconds": _WAIT_SECONDS}
                | {"start": "Earliest"},
            )
            # This process opens the same folder, and is led to the host by itself.
            (placed,) = log.publish(TOPIC, _record())
            answered = poll.result(_DEADLINE_SECONDS)["messages"]
            story.check(
                "A poll over HTTP was answered by what another process published",
                holds=[message["offset"] for message in answered] == [placed.offset],
            )
            _ask(url, "ack", {"topic": TOPIC, "group_id": _GROUP, "upto_offset": placed.offset})
            position = log.group_position(_GROUP, TOPIC, 0)
            story.check(
                "What it acknowledged over HTTP, the other one sees at once",
                holds=position is not None and position.upto_offset == placed.offset,
            )
        host.send_signal(signal.SIGTERM)
        story.check(
            "The host ended in order, and the log is free again",
            holds=host.wait(_DEADLINE_SECONDS) == 0,
        )


def _record() -> Any:
    from duolog.log.model import Record

    return Record(b'{"seat": "4B"}', key=b"4B")


@contextmanager
def _host(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "duolog.cli", "serve", "--log", str(folder)]
    command += ["--listen", "127.0.0.1:0", "--json", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:  # noqa: S603
        try:
            assert host.stdout is not None  # noqa: S101 - it is a pipe
            said = host.stdout.readline()
            if not said:
                raise HostFailed("The host did not start; what it said is above.")
            yield host, json.loads(said)["url"]
        finally:
            host.kill()


def _ask(url: str, what: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the host that was started here
        f"{url}/v1/api/topics/{what}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_DEADLINE_SECONDS) as answer:  # noqa: S310
        answered: dict[str, Any] = json.load(answer)
        return answered
