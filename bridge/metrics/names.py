"""Every metric of the host, with what it means. `docs/guide/http.md` has the same list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PREFIX = "duolog_"


class Kind(StrEnum):
    COUNTER = "counter"  # only grows while the host runs
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `name` is without the prefix."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()  # of a histogram's buckets
    only_when_told: bool = False  # not even its name is shown where nobody tells of it

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


_QUICK_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
_POLL_SECONDS = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
_REBALANCE_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PLACE = ("topic", "partition")
_GROUP = ("consumergroup", "topic", "partition", "side")

INFO = Metric("info", Kind.GAUGE, "Always 1; says which version runs.", ("version",))
START_TIME = Metric("start_time_seconds", Kind.GAUGE, "When the host started, since 1970.")

REQUESTS = Metric("http_requests_total", Kind.COUNTER, "Requests answered.", ("endpoint", "status"))
REQUEST_SECONDS = Metric(
    "http_request_seconds",
    Kind.HISTOGRAM,
    "From a request's headers to the end of its answer, without long polls.",
    ("endpoint",),
    _QUICK_SECONDS,
)
REFUSED = Metric(
    "http_refused_total",
    Kind.COUNTER,
    "Requests refused for who sent them: no token, an unknown one, a role too low, another topic.",
    ("reason",),
)
CONNECTIONS = Metric("connections", Kind.GAUGE, "Connections that are open now.")
CONNECTIONS_REFUSED = Metric(
    "connections_refused_total",
    Kind.COUNTER,
    "Connections turned away, because the host had as many as it takes.",
)
CONNECTIONS_LATE = Metric(
    "connections_late_total",
    Kind.COUNTER,
    "Connections closed because the client did not send the rest in time (headers, body), or took "
    "nothing of its answer (taking).",
    ("missing",),
)
POLLS_WAITING = Metric("polls_waiting", Kind.GAUGE, "Long polls that wait for a record now.")
POLL_SECONDS = Metric(
    "poll_seconds",
    Kind.HISTOGRAM,
    "How long a poll took, by how it ended: records, timeout, gone (the client left), stopped.",
    ("ended",),
    _POLL_SECONDS,
)
POLL_CONFLICTS = Metric(
    "poll_conflicts_total",
    Kind.COUNTER,
    "Polls answered 409, because another of the group was being answered.",
)
POLLS_UNSETTLED = Metric(
    "polls_unsettled_total",
    Kind.COUNTER,
    "First polls of a group that began where the host knew it, since Kafka did not say in time.",
)
GROUP_MEMBERS = Metric(
    "group_members",
    Kind.GAUGE,
    "Native members of groups: native, or simple (a caller that has never carried its member_id).",
    ("kind",),
)
REBALANCES = Metric(
    "group_rebalances_total", Kind.COUNTER, "Changes of which native member has which partitions."
)
SESSIONS_ENDED = Metric(
    "group_sessions_ended_total",
    Kind.COUNTER,
    "Native members that were not heard of for as long as their sessions last.",
)
REBALANCE_SECONDS = Metric(
    "group_rebalance_seconds",
    Kind.HISTOGRAM,
    "From a change of a group's native members until each knows what it has, and has let go of the "
    "rest.",
    (),
    _REBALANCE_SECONDS,
)
MEMBERS_OF_GROUP = Metric(
    "consumergroup_members",
    Kind.GAUGE,
    "Members of a group that has some here: native; and kafka, those there that had partitions of "
    "the topic after the last change that a native one saw. Groups beyond max_group_partitions are "
    "shown together.",
    ("consumergroup", "topic", "kind"),
)
SINCE_REBALANCE = Metric(
    "consumergroup_seconds_since_rebalance",
    Kind.GAUGE,
    "Time since the partitions of a group's native members last changed.",
    ("consumergroup", "topic"),
)
CONSUMED = Metric(
    "consumed_records_total", Kind.COUNTER, "Records sent to native consumers.", ("topic",)
)

TOPICS = Metric(
    "topics",
    Kind.GAUGE,
    'Topics: alone (with series of their own), or together (as topic=""), see [metrics].',
    ("shown",),
)
TOPIC_START = Metric(
    "topic_partition_start_offset", Kind.GAUGE, "The first offset still kept.", _PLACE
)
TOPIC_NEXT = Metric(
    "topic_partition_next_offset", Kind.GAUGE, "The offset that is written next.", _PLACE
)
TOPIC_BYTES = Metric(
    "topic_partition_bytes",
    Kind.GAUGE,
    "Bytes of the batches that are kept; of topics that are shown together, their sum.",
    _PLACE,
)
TOPIC_DAMAGED = Metric(
    "topic_partition_damaged_offsets",
    Kind.GAUGE,
    "Offsets in batches that cannot be decoded and were not skipped, as far as readers have met "
    "them. Only partitions that have some.",
    _PLACE,
)

GROUPS = Metric(
    "consumergroups",
    Kind.GAUGE,
    "Groups that have a position, each of their topics by itself: alone (with series of their "
    'own), or together (as consumergroup=""), see [metrics].',
    ("shown",),
)
GROUPS_EXPIRED = Metric(
    "consumergroups_expired_total",
    Kind.COUNTER,
    "Groups that were forgotten, since nobody had used them for group_retention_seconds.",
)
GROUP_POSITION = Metric(
    "consumergroup_position",
    Kind.GAUGE,
    "The next offset of the log that the group reads: natively, or by what Kafka was last seen at.",
    _GROUP,
)
GROUP_LAG = Metric(
    "consumergroup_lag",
    Kind.GAUGE,
    "Records that the group has not acknowledged; of groups that are shown together, their sum.",
    _GROUP,
)
GROUP_LAG_SECONDS = Metric(
    "consumergroup_lag_seconds",
    Kind.GAUGE,
    "Age of the oldest record that the group has not acknowledged; 0 without lag. Grows while the "
    "group stands still.",
    _GROUP,
)
GROUP_STALLED = Metric(
    "consumergroup_seconds_since_progress",
    Kind.GAUGE,
    "Time since the group's position last moved; 0 without lag. Of groups that are shown together, "
    "the longest.",
    _GROUP,
)

SQL_QUERIES = Metric(
    "sql_queries_total",
    Kind.COUNTER,
    "SELECTs over HTTP, by how they ended: done, given up (the client left, or the host stops), or "
    "the code of the error.",
    ("ended",),
)
SQL_PROCESSES = Metric("sql_processes", Kind.GAUGE, "Processes that run SELECTs, or wait for one.")

APPENDED = Metric("appended_records_total", Kind.COUNTER, "Records written to the log.")
DUPLICATES = Metric(
    "duplicates_dropped_total", Kind.COUNTER, "Records not written again, since they were there."
)
SYNCS = Metric("syncs_total", Kind.COUNTER, "Times that the log was made durable.")
CACHE_HITS = Metric("cache_hits_total", Kind.COUNTER, "Batches read from memory.")
CACHE_MISSES = Metric("cache_misses_total", Kind.COUNTER, "Batches read from disk.")

RETENTION_RUNS = Metric(
    "retention_runs_total",
    Kind.COUNTER,
    "Runs of retention, by how they ended: done, failed, cancelled.",
    ("ended",),
)
RETENTION_RECORDS = Metric(
    "retention_deleted_records_total", Kind.COUNTER, "Records that retention removed.", ("topic",)
)
RETENTION_BYTES = Metric(
    "retention_freed_bytes_total", Kind.COUNTER, "Bytes that retention freed.", ("topic",)
)
RETENTION_HELD = Metric(
    "retention_held_records",
    Kind.GAUGE,
    "Records that retention would have removed, and that stay for the mirror in Kafka; at least so "
    "many.",
    ("topic",),
)
RETENTION_LAST = Metric(
    "retention_last_done_time_seconds",
    Kind.GAUGE,
    "When retention was last through with all topics, since 1970; 0 before.",
)
STAGED_SWEPT = Metric(
    "staged_folders_swept_total", Kind.COUNTER, "Folders of staged parts that nobody needed."
)

WRITERS_REMEMBERED = Metric(
    "remembered_writers",
    Kind.GAUGE,
    "Writers of which the log remembers what they wrote last, when it looked last: publisher, "
    "batch, stream. It looks once an hour.",
    ("kind",),
)
WRITERS_EXPIRED = Metric(
    "expired_writers_total",
    Kind.COUNTER,
    "Writers that were forgotten, since they had not written for writer_expiration_seconds: "
    "publisher, batch.",
    ("kind",),
)

WORKER_UP = Metric("worker_up", Kind.GAUGE, "1 while the worker process is at work.", ("worker",))
WORKER_STARTS = Metric(
    "worker_starts_total", Kind.COUNTER, "Times that the worker process was started.", ("worker",)
)
WORKER_ENDS = Metric(
    "worker_ends_total",
    Kind.COUNTER,
    "Times that it ended, by how: asked, failed (it is started again), refused (it is not).",
    ("worker", "how"),
)

MIRROR_PARTITIONS = Metric(
    "mirror_partitions",
    Kind.GAUGE,
    "Partitions by what their mirror in Kafka does: mirroring; recovering (it finds out how far it "
    "is, or cannot get on for now); halted (somebody has to decide); paused.",
    ("phase",),
    only_when_told=True,
)
MIRROR_BEHIND = Metric(
    "mirror_records_behind",
    Kind.GAUGE,
    "Records that are not in Kafka yet. The 200 topics that are most behind are shown, others "
    'together as topic="".',
    ("topic",),
    only_when_told=True,
)
MIRROR_STANDS = Metric(
    "mirror_seconds_since_progress",
    Kind.GAUGE,
    "How long the partition has stood that is behind and stands longest, or how long nothing was "
    "heard of the worker; 0 when nothing is behind. Grows also while the worker is not there.",
    only_when_told=True,
)
MIRROR_SKIPPED = Metric(
    "mirror_skipped_total",
    Kind.COUNTER,
    "Records that are not copied to Kafka: it refused them, or retention was quicker. Those that "
    "were skipped before the host started are included.",
    only_when_told=True,
)
MIRROR_FOREIGN = Metric(
    "mirror_foreign_total",
    Kind.COUNTER,
    "Records of others that were passed over in Kafka.",
    only_when_told=True,
)
MIRROR_GROUPS = Metric(
    "mirror_groups",
    Kind.GAUGE,
    "Group positions that one side has still to take over (pending), and groups of which Kafka "
    "refuses to tell (refused).",
    ("state",),
    only_when_told=True,
)
MIRROR_WATCHING = Metric(
    "mirror_groups_watching",
    Kind.GAUGE,
    "1 while Kafka tells of commits as they come; 0 while it is asked for them now and then.",
    only_when_told=True,
)

TOKENS = Metric("tokens", Kind.GAUGE, "Tokens that are accepted now; none that has expired.")
TOKEN_RELOAD_FAILURES = Metric(
    "token_reload_failures_total",
    Kind.COUNTER,
    "Times that a changed token file could not be read; the tokens before stay in force.",
)

METRICS: tuple[Metric, ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Metric)
)
"""All of them, in the order of this file."""
