"""What happens in the demo, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer

from duolog.bridge.kafka.access import Overheard, reached
from duolog.bridge.kafka.audit import AuditReport, audit
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.local import LocalKafka
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.demo.children import Children, kill_worker
from duolog.demo.places import PARTITIONS, TABLE, Places
from duolog.demo.proof import Work, final_rows, read_kafka, replayed, work_done
from duolog.demo.screen import Screen
from duolog.demo.sight import Looker, Sight
from duolog.log.access import LogAccess
from duolog.log.model import Envelope, Op, Route, TopicSettings
from duolog.reach import reach

KAFKA, HOST, SHOP = "kafka", "host", "shop"
FIRST_MEMBERS: Final = ("kafka-1", "kafka-2", "native-1", "native-2")
_REACH_SECONDS: Final = 15.0
_START_SECONDS: Final = 300.0  # Spark on a busy machine; what ends by itself is noticed at once
_SETTLE_SECONDS: Final = 180.0
_SHOP_GRACE_SECONDS: Final = 120.0  # what has changed last is still written then
_LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Result:
    """What was found when all had come to rest."""

    sight: Sight
    work: Work
    table_rows: int
    replayed_rows: int
    is_same_table: bool
    report: AuditReport
    killed_worker: int

    def as_json(self) -> dict[str, Any]:
        return {
            "written": self.sight.written,
            "mirrored": self.sight.mirrored,
            "acknowledged": self.sight.native_position,
            "left_out": self.work.left_out,
            "twice": self.work.twice,
            "table_rows": self.table_rows,
            "same_table": self.is_same_table,
            "equal": self.report.is_equal,
        }


class Stage:
    """The running demo."""

    def __init__(self, places: Places, children: Children, bootstrap_servers: str) -> None:
        self.places = places
        self.children = children
        self.bootstrap_servers = bootstrap_servers
        self.url = ""
        self.killed_worker = 0

    # -- the beginning

    def open_log(self) -> None:
        """A log with a topic that takes all changes of the table, and its host."""
        from duolog.avro.embedded import open_log

        with open_log(self.places.log) as log:
            settings = TopicSettings(partitions=PARTITIONS, envelope=Envelope.DEBEZIUM)
            log.create_topic(self.places.topic, settings)
            log.add_route(
                self.places.topic,
                Route(TABLE, frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})),
            )
        self.children.start(
            HOST,
            *("duolog.cli", "serve", "--log", str(self.places.log), "--listen", "127.0.0.1:0"),
            *("--bootstrap-servers", self.bootstrap_servers, "--json", "--log-json"),
        )
        self.url = self.children.wait_for("the host's address", self._told_url, _START_SECONDS)

    def open_shop(self, jars: list[Path]) -> None:
        """The Spark job; it is there when its first orders are in the log."""
        self.children.start(
            SHOP,
            *("duolog.demo.shop", str(self.places.folder), ",".join(map(str, jars))),
            grace_seconds=_SHOP_GRACE_SECONDS,
        )

    def first_orders(self) -> int:
        """How many events there are, once there are some."""
        with reach(self.places.log) as log:

            def written() -> int | None:
                return sum(each.next_offset for each in log.offsets(self.places.topic)) or None

            return self.children.wait_for("the first orders", written, _START_SECONDS)

    def _told_url(self) -> str | None:
        urls = [each["url"] for each in self.children.told(HOST) if "url" in each]
        return urls[0] if urls else None

    # -- those who read

    def begin(self, member: str, looker: Looker) -> None:
        is_kafka = member.startswith(KAFKA)
        self.children.start(
            member,
            f"duolog.demo.{'kafka' if is_kafka else 'native'}_member",
            self.bootstrap_servers if is_kafka else self.url,
            *(self.places.topic, self.places.group, str(self.places.ledger(member))),
        )
        looker.watch(member)

    def kill(self, member: str, looker: Looker) -> None:
        self.children.kill(member)
        looker.was_killed(member)

    # -- in the middle, and at the end

    def kill_worker(self) -> None:
        """The process that mirrors, and holds the native consumers' places in Kafka's group."""
        self.killed_worker = kill_worker(self.children.told(HOST))

    def close_shop(self) -> None:
        self.children.stop(SHOP)


@contextmanager
def kafka_at(places: Places, bootstrap_servers: str | None) -> Iterator[str]:
    """A broker of the demo's own, unless one is named, which has to answer."""
    if bootstrap_servers is not None:
        settings = KafkaSettings.of(bootstrap_servers).for_confluent()
        overheard = Overheard()
        with closing(Consumer({**settings, **overheard.options, "group.id": places.group})) as asks:
            reached(asks, overheard, _REACH_SECONDS)
        yield bootstrap_servers
        return
    with LocalKafka(places.kafka, port=0, heap_megabytes=512) as broker:
        yield broker.bootstrap_servers


def play(stage: Stage, seconds: float, screen: Screen) -> Result:
    """From the first consumer to the proof."""
    places, children = stage.places, stage.children
    with ExitStack() as ending:
        log = ending.enter_context(reach(places.log))
        looker = ending.enter_context(Looker(places, log, stage.bootstrap_servers))
        with screen:
            for member in FIRST_MEMBERS:
                stage.begin(member, looker)
            _watch(children, looker, screen, seconds * 0.3, "two consumers of each kind, one group")
            stage.kill("kafka-2", looker)
            said = "kill -9 of kafka-2: the others take its partitions"
            _watch(children, looker, screen, seconds * 0.25, said)
            stage.kill_worker()
            said = "kill -9 of the process that mirrors"
            _watch(children, looker, screen, seconds * 0.2, said)
            stage.begin("kafka-2", looker)
            _watch(children, looker, screen, seconds * 0.25, "kafka-2 is back")
            screen.show(looker.look(), "the shop closes; the rest comes to its end")
            stage.close_shop()
            sight = _settled(children, looker, screen)
            for member in FIRST_MEMBERS:
                children.stop(member)
        ends = {each.partition: each.next_offset for each in log.offsets(places.topic)}
        work = work_done(looker.done(), ends)
        table = final_rows(places.final_rows)
        again = replayed(read_kafka(stage.bootstrap_servers, places.topic))
        report = _audit(log, stage)
    return Result(sight, work, len(table), len(again), table == again, report, stage.killed_worker)


def _watch(children: Children, looker: Looker, screen: Screen, seconds: float, doing: str) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        children.look_after()
        screen.show(looker.look(), doing)
        time.sleep(_LOOK_SECONDS)


def _settled(children: Children, looker: Looker, screen: Screen) -> Sight:
    def look() -> Sight | None:
        sight = looker.look()
        screen.show(sight, "the rest is mirrored and acknowledged")
        return sight if sight.is_settled else None

    return children.wait_for("everything being acknowledged on both sides", look, _SETTLE_SECONDS)


def _audit(log: LogAccess, stage: Stage) -> AuditReport:
    settings = KafkaSettings.of(stage.bootstrap_servers).for_confluent()
    return audit(
        log,
        settings,
        topics=[stage.places.topic],
        groups=GroupFilter.of(stage.places.group),
    )
