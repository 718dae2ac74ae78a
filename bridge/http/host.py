"""What the endpoints share: one log, threads for its calls, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from duolog.bridge.groups import HostGroups
from duolog.bridge.http.answers_held import AnswersHeld
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.landing import Landing
from duolog.bridge.http.pages import Origin
from duolog.bridge.http.places import Places
from duolog.bridge.http.rules import READING_BYTES, BodyLimits, TopicRules
from duolog.bridge.http.workers import PARSE_THREADS, READ_THREADS, WRITE_THREADS, Workers
from duolog.bridge.journal import Journal
from duolog.bridge.members.attendance import HostAttendance
from duolog.bridge.members.coordinator import Coordinator
from duolog.bridge.members.gathering import Gathering, Seats
from duolog.bridge.members.kafka_seats import KafkaSeating
from duolog.bridge.members.model import Rules as MemberRules
from duolog.bridge.metrics.bounds import MetricRules
from duolog.bridge.metrics.names import REBALANCE_SECONDS
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.asking import Asking
from duolog.bridge.sql.readable_schemas import value_reader_of
from duolog.bridge.sql.rules import SqlRules
from duolog.bridge.visible_reads import VisibleTopics
from duolog.bridge.waiting import WaitingRoom, in_kafka
from duolog.clock import Clock
from duolog.log import EmbeddedLog, LogAccess
from duolog.server.request_memory import RequestMemory

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader


_ANY_NUMBER = 1 << 30  # of requests: connections bound it


@dataclass(slots=True)
class Host:
    """A log that is served. `open` and `close` run on the event loop that serves it."""

    log: EmbeddedLog
    clock: Clock
    tally: Tally
    journal: Journal
    doorkeeper: Doorkeeper
    topic_rules: TopicRules = field(default_factory=TopicRules)
    body_limits: BodyLimits = field(default_factory=BodyLimits)
    advertised: Origin | None = None  # where others ask it, when that is not where it listens
    sql_rules: SqlRules = field(default_factory=SqlRules)
    workers_shown: Callable[[], Mapping[str, Any]] = dict  # its worker processes, by name
    ready_when_degraded: bool = True  # to /readyz
    kafka_worker: Asking | None = None  # where the log is mirrored
    places: Places = field(default_factory=Places)
    member_rules: MemberRules = field(default_factory=MemberRules)
    metric_rules: MetricRules = field(default_factory=MetricRules)
    members: Coordinator = field(init=False)
    request_memory: RequestMemory = field(init=False)  # of large requests
    reading_memory: RequestMemory = field(init=False)  # to read for requests, and to show it
    answers: AnswersHeld = field(init=False)  # that clients have not taken yet
    parsers: Workers = field(init=False)  # of large bodies
    readers: Workers = field(init=False)
    writers: Workers = field(init=False)
    watchers: Workers = field(init=False)  # health and metrics: never behind others in a queue
    landing: Landing = field(init=False)  # of what is written without a thread
    room: WaitingRoom = field(init=False)
    groups: HostGroups = field(init=False)
    value_reader: Callable[[], ValueReader] = field(init=False)  # with all schemas of the log
    visible: VisibleTopics = field(init=False)  # for callers who may have some records only
    is_open: bool = False
    _seating: KafkaSeating | None = None
    _loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.log.limit_partitions(self.topic_rules.max_partitions)
        self.room = WaitingRoom(self.log)
        self.request_memory = RequestMemory(
            self.body_limits.large_request_memory, self.body_limits.max_large_requests
        )
        self.reading_memory = RequestMemory(READING_BYTES, _ANY_NUMBER)
        self.answers = AnswersHeld(self.body_limits.answer_memory)
        self.value_reader = value_reader_of(self.log)
        self.visible = VisibleTopics(self.log, self.value_reader)
        self.groups = HostGroups(self.log, self.tally, self.journal, lambda: self.kafka_worker)
        self.members = Coordinator(
            self.clock,
            self.log.log_id[:8],
            self.member_rules,
            self._seats_in_kafka,
            lambda seconds: self.tally.note(REBALANCE_SECONDS, seconds=seconds),
        )
        attendance = HostAttendance(
            self.log, self.members, lambda: self.kafka_worker, self.metric_rules
        )
        self.log.attend(attendance)
        self.tally.ask(attendance.samples)

    def _seats_in_kafka(self, gathering: Gathering) -> Seats | None:
        return None if self._seating is None else self._seating.find(gathering)

    def groups_with_members(self) -> set[str]:
        """From any thread."""
        return {gathering.group for gathering in self.members.shown()}

    def both_sides(self) -> HostGroups | None:
        """What deletes groups in Kafka too, where the log is mirrored."""
        return None if self.kafka_worker is None else self.groups

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.parsers = Workers("large request", PARSE_THREADS)
        self.readers = Workers("read", READ_THREADS)
        self.writers = Workers("write", WRITE_THREADS)
        self.watchers = Workers("watch", 1)
        self.landing = Landing()
        self.members.open()
        if self.kafka_worker is not None:
            self._seating = KafkaSeating(
                self.kafka_worker,
                cast("LogAccess", self.log),
                self.members.changed,
                lambda topic_id: self.room.wake(in_kafka(topic_id)),
                self.member_rules.max_proxies,
            )
        self.is_open = True

    def stop_waiting(self) -> None:
        """Have all polls answered now. May be called from a signal's handler."""
        if self.is_open:
            self._loop.call_soon_threadsafe(self.room.stop)

    def close(self) -> None:
        """Finish what is under way."""
        self.is_open = False
        if self._seating is not None:
            self._seating.close()
        self.members.close()
        self.room.close()
        for workers in (self.parsers, self.readers, self.writers, self.watchers):
            workers.close()
