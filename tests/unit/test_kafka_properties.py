"""What a local broker is told, how it is asked whether it is ready, and what its log gives away."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from duolog.bridge.kafka.local import LocalKafka, ports
from duolog.bridge.kafka.local.ports import check_free, free_port
from duolog.bridge.kafka.local.properties import Listener, as_text, broker_properties
from duolog.bridge.kafka.local.ready import cluster_at, cluster_in, metadata_request
from duolog.bridge.kafka.local.storage import cluster_of
from duolog.bridge.kafka.local.trouble import is_taken_port, last_lines, told
from duolog.errors import InvalidSetting, LocalKafkaFailed, PortTaken


def _properties(**extra: str) -> dict[str, str]:
    return broker_properties(Path("/d"), [Listener("PLAINTEXT", 9092)], 9093, extra)


def test_one_node_needs_one_copy_of_everything() -> None:
    properties = _properties()
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert properties[f"{name}.replication.factor"] == "1"
    assert properties["group.initial.rebalance.delay.ms"] == "0"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_everything_listens_on_loopback_and_the_controller_is_not_advertised() -> None:
    properties = _properties()
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"


def test_listeners_with_other_protocols_stand_beside_the_plain_one() -> None:
    properties = broker_properties(
        Path("/d"), [Listener("PLAINTEXT", 1), Listener("SECURE", 2, "SASL_SSL")], 3
    )
    assert properties["inter.broker.listener.name"] == "PLAINTEXT"
    assert properties["listener.security.protocol.map"] == (
        "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
    )


def test_what_the_user_sets_wins() -> None:
    assert _properties(**{"offsets.topic.num.partitions": "50"})[
        "offsets.topic.num.partitions"
    ] == "50"  # fmt: skip


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain", "n=plain\n"),
        (" led by a space", "n=\\ led by a space\n"),
        ("a\\b", "n=a\\\\b\n"),
        ("a=b:c#d!e", "n=a\\=b\\:c\\#d\\!e\n"),
        ("two\nlines", "n=two\\u000alines\n"),
        ("ü", "n=\\u00fc\n"),
        ("😀", "n=\\ud83d\\ude00\n"),
    ],
)
def test_values_are_written_so_that_java_reads_them_back(value: str, line: str) -> None:
    assert as_text({"n": value}) == line


def _answer(brokers: int, cluster: bytes | None, correlation: int = 1) -> bytes:
    broker = struct.pack(">ih", 1, 9) + b"127.0.0.1" + struct.pack(">ih", 9092, -1)
    name = struct.pack(">h", -1) if cluster is None else struct.pack(">h", len(cluster)) + cluster
    return struct.pack(">ii", correlation, brokers) + broker * brokers + name


@pytest.mark.parametrize(
    ("answer", "cluster"),
    [
        (_answer(1, b"abc"), "abc"),
        (_answer(0, b"abc"), None),  # no broker takes work yet
        (_answer(1, None), None),
        (_answer(1, b"abc", correlation=7), None),
        (_answer(1, b"abc")[:20], None),
        (b"", None),
        (b"HTTP/1.1 400 Bad Request", None),
    ],
)
def test_only_a_broker_that_takes_work_is_ready(answer: bytes, cluster: str | None) -> None:
    assert cluster_in(answer) == cluster


def test_the_request_says_its_own_length() -> None:
    request = metadata_request()
    assert struct.unpack_from(">i", request)[0] == len(request) - 4


def test_nobody_and_a_silent_listener_are_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert cluster_at(port, 0.05) is None
    assert cluster_at(port, 0.05) is None


def test_chosen_ports_are_below_those_of_outgoing_connections() -> None:
    assert 10_000 < free_port() < 32_768


def test_a_port_that_is_chosen_already_is_not_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _: True)
    monkeypatch.setattr(ports, "_LOWEST", 20_000)
    monkeypatch.setattr(ports, "_HIGHEST", 20_001)
    monkeypatch.setattr(ports, "_TRIES", 10_000)
    assert {free_port({20_000}) for _ in range(20)} == {20_001}


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1 port {port}: .+ Choose another"):
            check_free(port)
    check_free(port)


def test_no_free_port_at_all_is_an_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _: False)
    with pytest.raises(PortTaken, match="all are in use"):
        free_port()


def test_the_log_of_an_earlier_start_is_not_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old: Address already in use\n")
    start = log.stat().st_size
    with log.open("a") as more:
        more.write("new\n")
    assert last_lines(log, start) == ["new"]
    assert is_taken_port(last_lines(log))
    assert not is_taken_port(last_lines(log, start))


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("line\n" * 100_000 + "last\n")
    lines = last_lines(log)
    assert len(lines) < 20_000
    assert lines[-1] == "last"
    assert last_lines(tmp_path / "none") == []


def test_known_reasons_come_with_advice_and_frames_are_left_out() -> None:
    text = told(["a", "ERROR No space left on device", "\tat kafka.Kafka$.main(Kafka.scala)"])
    assert text.startswith("The disk is full: make room. It last said:\n  a\n  ERROR")
    assert "Kafka.scala" not in text
    assert told([]) == "It said nothing."


def test_a_folder_without_data_has_no_cluster(tmp_path: Path) -> None:
    assert cluster_of(tmp_path) is None
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=Abc-_1\nnode.id=1\n")
    assert cluster_of(tmp_path) == "Abc-_1"


def test_what_cannot_run_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="heap"):
        LocalKafka(tmp_path / "k", heap_megabytes=16)
    with pytest.raises(InvalidSetting, match="comma"):
        LocalKafka(tmp_path / "a,b")
    assert not list(tmp_path.iterdir())


def test_a_broker_that_was_not_started_says_so() -> None:
    broker = LocalKafka()
    for ask in ("folder", "port", "bootstrap_servers", "pid"):
        with pytest.raises(LocalKafkaFailed, match="broker"):
            getattr(broker, ask)
    assert not broker.running
    broker.stop()
    broker.kill()
    broker.close()
