"""The example of a service that consumes, run as its first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

import duolog
from duolog.bridge.kafka.local.ports import free_port
from duolog.client import Admin, Publisher
from duolog.log.model import TopicSettings
from tests.integration.client_host import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE_SECONDS = 60


def test_a_service_consumes_while_it_answers(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
    with serving(tmp_path) as url, Publisher(url=url) as publisher, Admin(url=url) as admin:
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES)]
        command += ["orders_service:app", "--port", str(port), "--log-level", "warning"]
        service = subprocess.Popen(command, env={**os.environ, "DUOLOG_URL": url})
        try:
            for number in range(40):
                customer = f"c{number % 3}"
                publisher.publish("orders", {"customer": customer, "amount": number}, key=customer)
            wanted = {f"c{c}": sum(range(c, 40, 3)) for c in range(3)}
            deadline = time.monotonic() + DEADLINE_SECONDS
            while (found := _totals(port)) != wanted:
                assert time.monotonic() < deadline, found
                assert service.poll() is None
            question = "SELECT sum(position) FROM system.topic_offsets"
            while (answered := list(admin.sql(question).rows())) != [(40,)]:
                assert time.monotonic() < deadline, answered
        finally:
            service.terminate()
            assert service.wait(DEADLINE_SECONDS) in {0, -15}


def _totals(port: int) -> object:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/totals", timeout=10).json()
    except httpx.HTTPError:
        return None
