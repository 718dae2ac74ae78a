"""What the containers run, run without an engine: the commands of Dockerfile and compose file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from tests.support.kafka import Kafka

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "docker" / "entry.sh"
TOKEN = re.compile(r"\bduolog_[\w-]{43}\b")
DEADLINE_SECONDS = 240


@dataclass(frozen=True)
class Container:
    """A host that its entry script has started."""

    url: str
    process: subprocess.Popen[str]
    errors: Path

    def stop(self) -> str:
        """Stop it as an engine does; what it said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE_SECONDS) == 0, self.errors.read_text()
        return self.errors.read_text()

    def answers(self, path: str, token: str | None) -> tuple[int, str]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()


def variables(given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DUOLOG_")}
    return {**kept, **given, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def image_variables(folder: Path) -> dict[str, str]:
    """What the Dockerfile sets, with its folder in place of /data and loopback."""
    found = re.findall(r"\b(DUOLOG_\w+)=(\S+)", (ROOT / "Dockerfile").read_text())
    assert len(found) == 3
    return {
        n: v.replace("/data", str(folder)).replace("0.0.0.0:7070", "127.0.0.1:0") for n, v in found
    }


@contextmanager
def started(command: list[str], given: Mapping[str, str], errors: Path) -> Iterator[Container]:
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [ENTRY, *command],
            env=variables(given),
            cwd=errors.parent,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, errors.read_text()
            yield Container(url, process, errors)
        finally:
            process.kill()


def test_a_container_makes_its_tokens_once_and_prints_none(tmp_path: Path) -> None:
    data, neighbour = tmp_path / "data", tmp_path / "neighbour"
    data.mkdir()
    given = {**image_variables(data), "DUOLOG_NEIGHBOURS": f"prometheus:user:{neighbour}"}
    with started([], given, tmp_path / "first") as container:
        first = data / "first-token"
        token = first.read_text().strip()
        assert TOKEN.fullmatch(token)
        assert first.stat().st_mode & 0o777 == 0o600
        theirs = neighbour.read_text().strip()
        assert container.answers("/metrics", None)[0] == 401
        for known in (token, theirs):
            assert container.answers("/metrics", known)[0] == 200
            assert known not in (data / "tokens").read_text()
        said = container.stop()
    assert f"cat {first}" in said
    assert not TOKEN.search(said)
    first.unlink()
    assert (data / "tokens").stat().st_mode & 0o777 == 0o600
    neighbour.unlink()  # then it is no use to anybody, and another one is made
    with started(["serve", "--log-json"], given, tmp_path / "second") as container:
        assert container.answers("/metrics", token)[0] == 200
        assert container.answers("/metrics", theirs)[0] == 401
        assert container.answers("/metrics", neighbour.read_text().strip())[0] == 200
        said = container.stop()
    assert not TOKEN.search(said)
    assert "first token" not in said
    assert not first.exists()


def test_a_token_file_of_ones_own_is_left_as_it_is(tmp_path: Path) -> None:
    given = image_variables(tmp_path)
    duolog = Path(sys.executable).with_name("duolog")
    mine = tmp_path / "mine"
    made = subprocess.run(
        [duolog, "token", "create", "--role", "user", "--name", "me", "--file", mine],
        env=variables({}),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    before = mine.read_bytes()
    with started(["serve", f"--tokens={mine}"], given, tmp_path / "said") as container:
        assert container.answers("/metrics", made.stdout.strip())[0] == 200
        assert not TOKEN.search(container.stop())
    assert mine.read_bytes() == before
    assert not (tmp_path / "tokens").exists()


def test_other_commands_go_to_the_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [ENTRY, "topic", "create", "orders"],
        env=variables(image_variables(tmp_path)),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "tokens").exists()


def test_what_the_compose_file_starts_carries_orders_from_spark_into_kafka(
    tmp_path: Path, kafka: Kafka
) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    topic = f"orders-{uuid.uuid4().hex[:12]}"  # the mirror makes it
    places = {
        "kafka:9092": kafka.bootstrap_servers,
        "0.0.0.0:7070": "127.0.0.1:0",
        "orders:4": f"{topic}:4",
        "/data": str(tmp_path / "data"),
        "/tokens": str(tmp_path / "tokens"),
        "/checkpoints": str(tmp_path / "checkpoints"),
        "/jobs": str(ROOT / "docker" / "jobs"),
    }
    for folder in ("data", "tokens/prometheus", "tokens/spark"):
        (tmp_path / folder).mkdir(parents=True)
    bridge = placed(services["bridge"], places)
    with started(bridge["command"], bridge["environment"], tmp_path / "bridge") as container:
        healthy(container.url)

        spark = placed(services["spark"], {**places, "http://bridge:7070": container.url})
        job = subprocess.run(
            [sys.executable, *spark["command"]],
            env=variables(
                {
                    **spark["environment"],
                    "PYSPARK_PYTHON": sys.executable,
                    "TOPIC": topic,
                    "STOP_AFTER_ORDERS": "100",
                }
            ),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert job.returncode == 0, job.stderr[-3000:]
        assert read_from_kafka(kafka, topic, 100) >= 100
        token = (tmp_path / "tokens/prometheus/token").read_text().strip()
        status, metrics = container.answers("/metrics", token)
        assert status == 200
        assert 'duolog_worker_up{worker="kafka"} 1' in metrics
        assert f'duolog_topic_partition_next_offset{{topic="{topic}"' in metrics
        audit = subprocess.run(
            [ENTRY, "audit", "--bootstrap-servers", kafka.bootstrap_servers],
            env=variables(bridge["environment"]),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert audit.returncode == 0, audit.stdout + audit.stderr
        said = container.stop()
    assert not TOKEN.search(said)


def placed(service: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """Command and environment of a service, with what they name in a container put elsewhere."""

    anything = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, places))})")

    def put(text: str) -> str:
        return anything.sub(lambda found: places[found[0]], text)

    return {
        "command": [put(each) for each in service["command"]],
        "environment": {name: put(value) for name, value in service["environment"].items()},
    }


def healthy(url: str) -> None:
    """The health check of the image says yes for this host, and no where there is none."""
    check = [sys.executable, str(ROOT / "docker" / "healthy.py")]
    for asked, code in ((f"{url}/readyz", 0), (f"{url}/nowhere", 1)):
        done = subprocess.run(
            check,
            env=variables({"DUOLOG_HEALTH_URL": asked}),
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stderr


def read_from_kafka(kafka: Kafka, topic: str, enough: int) -> int:
    """How many records a consumer gets before there are enough."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": kafka.new_group(),
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    count = 0
    while count < enough:
        record = consumer.poll(DEADLINE_SECONDS)
        assert record is not None, f"{count} of {enough} records came"
        assert not record.error()
        count += 1
    consumer.close()
    return count
