"""What `duolog doctor` makes of what it finds, as tables."""

from __future__ import annotations

import socket

import pytest

from duolog.cli import checkup_extras, checkup_kafka, checkup_machine, checkup_registry
from duolog.cli.checkup import Status
from duolog.cli.checkup_kafka import SeenTopic

OK, WARNING, ERROR = Status.OK, Status.WARNING, Status.ERROR
ALL_OF_TOPIC = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "DELETE"})
OFFSETS = "__consumer_offsets"


@pytest.mark.parametrize(
    ("version", "java", "pandas", "python", "status", "said"),
    [
        ("4.1.1", 17, "2.3.3", "/py", OK, "Java 17"),
        ("4.1.1", 21, "2.3.3", "/py", OK, "Java 21"),
        ("4.1.1", None, "2.3.3", "/py", ERROR, "no Java"),
        ("4.1.1", 11, "2.3.3", "/py", ERROR, "too old"),
        ("3.5.7", 11, "2.3.3", "/py", OK, "Java 11"),
        ("3.5.7", 21, "2.3.3", "/py", WARNING, "Java 21"),
        ("4.1.1", 17, "3.0.0", "/py", WARNING, "pandas 3.0.0"),
        ("4.1.1", 17, None, "/py", WARNING, "no pandas"),
    ],
)
def test_spark_is_judged_with_what_it_runs_on(
    version: str, java: int | None, pandas: str | None, python: str, status: Status, said: str
) -> None:
    environment = {"PYSPARK_PYTHON": python}
    finding = checkup_extras.judged_spark(version, java, pandas, environment, python)
    assert finding.status is status
    assert said in finding.found
    assert (finding.advice is None) == (status is OK and version >= "4")


def test_an_older_spark_is_told_what_it_cannot_do_and_a_worker_may_be_another_python() -> None:
    older = checkup_extras.judged_spark("3.5.7", 17, "2.3.3", {"PYSPARK_PYTHON": "/py"}, "/py")
    assert "4.1 or newer" in (older.advice or "")
    unset = checkup_extras.judged_spark("4.1.1", 17, "2.3.3", {}, "/py")
    assert "PYSPARK_PYTHON=/py" in (unset.advice or "")


@pytest.mark.parametrize(
    ("cluster", "topics", "missing", "expected"),
    [
        ({"CREATE"}, [], [], [OK]),
        ({"CREATE"}, [SeenTopic("a", ALL_OF_TOPIC)], [], [OK]),
        ({"CREATE"}, [SeenTopic("a", None)], [], [OK]),
        (set(), [], [], [WARNING]),
        (set(), [], ["a"], [ERROR]),
        ({"CREATE"}, [SeenTopic("a", ALL_OF_TOPIC - {"WRITE"})], [], [ERROR]),
        ({"CREATE"}, [SeenTopic("a", ALL_OF_TOPIC - {"DELETE", "ALTER"})], [], [WARNING]),
        ({"CREATE"}, [SeenTopic("a", frozenset())], [], [ERROR, WARNING]),
        ({"CREATE"}, [SeenTopic(OFFSETS, frozenset({"READ"}))], [], [OK]),
        ({"CREATE"}, [SeenTopic(OFFSETS, frozenset())], [], [WARNING, OK]),
        (None, [], [], [WARNING]),
    ],
)
def test_rights_are_judged_by_what_they_are_for(
    cluster: set[str] | None, topics: list[SeenTopic], missing: list[str], expected: list[Status]
) -> None:
    allowed = None if cluster is None else frozenset(cluster)
    found = list(checkup_kafka.judged_rights(allowed, topics, missing))
    assert [each.status for each in found] == expected
    assert all(each.advice for each in found if each.status is ERROR)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, []),
        ({"cleanup.policy": "compact"}, [ERROR]),
        ({"message.timestamp.type": "LogAppendTime"}, [ERROR]),
        ({"retention.ms": "1000", "retention.bytes": "5"}, [WARNING, WARNING]),
    ],
)
def test_a_kafka_topic_is_judged_as_the_mirror_does(
    settings: dict[str, str], expected: list[Status]
) -> None:
    found = checkup_kafka.judged_topic(SeenTopic("a", None, settings))
    assert [each.status for each in found] == expected


@pytest.mark.parametrize(
    ("status", "judged", "said"),
    [
        (200, OK, "answers (3 ms)"),
        (401, ERROR, "does not let in"),
        (403, ERROR, "does not let in"),
        (404, ERROR, "status 404"),
        (503, ERROR, "status 503"),
    ],
)
def test_a_registry_is_judged_by_its_answer(status: int, judged: Status, said: str) -> None:
    finding = checkup_registry.judged("http://r", status, 3.2)
    assert finding.status is judged
    assert said in finding.found


def test_a_registry_that_nobody_is_at_is_an_error_and_its_password_is_not_shown() -> None:
    assert checkup_registry.registry({}).status is OK
    options = {"schema.registry.url": "http://me:hunter2@127.0.0.1:1"}
    finding = checkup_registry.registry(options)
    assert finding.status is ERROR
    assert "hunter2" not in finding.found
    assert checkup_registry.registry({"schema.registry.url": "no address"}).status is ERROR


@pytest.mark.parametrize(
    ("now", "is_synchronised", "status"),
    [
        (1_800_000_000, True, OK),
        (1_800_000_000, None, OK),
        (1_800_000_000, False, WARNING),
        (1_000_000, True, ERROR),
    ],
)
def test_the_clock_is_judged_by_what_it_says_and_who_keeps_it(
    now: float, is_synchronised: bool | None, status: Status
) -> None:
    finding = checkup_machine.clock(lambda: now, lambda: is_synchronised)
    assert finding.status is status


def test_the_kernel_can_be_asked_who_keeps_its_clock() -> None:
    assert checkup_machine.kernel_says_synchronised() in {True, False, None}


@pytest.mark.parametrize(("ahead_ms", "is_told"), [(-5, False), (60_000, False), (60_001, True)])
def test_records_from_the_future_are_told(ahead_ms: int, is_told: bool) -> None:
    finding = checkup_machine.latest_record(1_000_000 + ahead_ms, 1_000_000)
    assert (finding is not None) == is_told


def test_a_port_is_free_or_taken_or_not_to_be_had() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        finding = checkup_machine.port("127.0.0.1", number, "serve")
        assert finding.status is WARNING
        assert "--listen" in (finding.advice or "")
    assert checkup_machine.port("127.0.0.1", number, "serve").status is OK
    assert checkup_machine.port("192.0.2.1", number, "serve").status is WARNING


@pytest.mark.parametrize(
    ("limits", "status", "found"),
    [
        ((1024, 1024), WARNING, "1,024 of 1,024; a log keeps up to 128 of its tables open"),
        ((1024, 20_000), OK, "20,000 of 20,000; a log keeps up to 2,500 of its tables open"),
        ((1024, -1), OK, "65,536 of any number; a log keeps up to 8,192 of its tables open"),
        ((1 << 20, 1 << 20), OK, "1,048,576 of 1,048,576; a log keeps up to 8,192 of its"),
    ],
)
def test_a_process_that_may_open_few_files_is_told(
    limits: tuple[int, int], status: Status, found: str
) -> None:
    finding = checkup_machine.open_files(limits)
    assert finding.status is status
    assert finding.found.startswith(found)
