"""The requests, each with its answer. They are sent by aiokafka's connections.

A topic is named by its id where the broker can: a topic that was deleted and made again is then
another one to the broker too, and refuses what was meant for the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID

from duolog.bridge.kafka.wire.fields import (
    NO_TAGS,
    Reader,
    array,
    int8,
    int16,
    int32,
    int64,
    one_item,
    text,
    varint,
)
from duolog.errors import KafkaUnsupported

if TYPE_CHECKING:
    from duolog.bridge.kafka.wire.record_batch import KafkaBatch

A = TypeVar("A")
Versions = Mapping[int, tuple[int, int]]
Body = bytes | Sequence[bytes | memoryview]

_PRODUCE: Final = 0
_FETCH: Final = 1
_LIST_OFFSETS: Final = 2
_METADATA: Final = 3
_INIT_PRODUCER_ID: Final = 22
_DESCRIBE_PRODUCERS: Final = 61

_PRODUCE_BY_NAME, _PRODUCE_BY_ID = 9, 13
_FETCH_BY_NAME, _FETCH_BY_ID = 12, 13

EARLIEST: Final = -2
LATEST: Final = -1
ALL_IN_SYNC: Final = -1


class _Header:
    """What begins each message: the connection reads and writes it."""

    def __init__(self, correlation_id: int, encoded: bytes = b"") -> None:
        self.correlation_id = correlation_id
        self._encoded = encoded

    def encode(self) -> bytes:
        return self._encoded


class _Answer(Generic[A]):
    def __init__(self, read: Callable[[Reader], A]) -> None:
        self.read = read

    def decode(self, stream: IO[bytes]) -> A:
        return self.read(Reader(stream.read()))


class Prepared(Generic[A]):
    """A request in the version that the broker knows, as aiokafka's connection takes it."""

    def __init__(
        self,
        api_key: int,
        version: int,
        body: Body,
        read: Callable[[Reader], A],
        *,
        is_flexible: bool = True,
    ) -> None:
        """An old request is not flexible: its headers have no tags."""
        self._key = api_key
        self._tags = NO_TAGS if is_flexible else b""
        self._version = version
        self._body = body
        self.RESPONSE_TYPE = _Answer(read)

    def build_request_header(self, correlation_id: int, client_id: str) -> _Header:
        name = client_id.encode()
        begin = int16(self._key) + int16(self._version) + int32(correlation_id)
        return _Header(correlation_id, begin + int16(len(name)) + name + self._tags)

    def parse_response_header(self, stream: IO[bytes]) -> _Header:
        correlation_id = int.from_bytes(stream.read(4), "big", signed=True)
        if stream.read(len(self._tags)) != self._tags:
            raise ValueError("An answer's header has tags that nobody asked for.")
        return _Header(correlation_id)

    def encode(self) -> bytes:
        return self._body if isinstance(self._body, bytes) else b"".join(self._body)

    def pieces(self) -> Sequence[bytes | memoryview]:
        """The same for those who can send one piece after the other."""
        return (self._body,) if isinstance(self._body, bytes) else self._body

    def without_body(self) -> Prepared[A]:
        """What is needed to read the answer."""
        read, is_flexible = self.RESPONSE_TYPE.read, bool(self._tags)
        return Prepared(self._key, self._version, b"", read, is_flexible=is_flexible)


def _version(versions: Versions, key: int, name: str, *wanted: int) -> int:
    lowest, highest = versions.get(key, (0, -1))
    for version in wanted:
        if lowest <= version <= highest:
            return version
    raise KafkaUnsupported(
        f"The broker does not know {name} version {min(wanted)}: the mirror needs Apache Kafka 3.1 "
        "or newer."
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A partition, by name and by id."""

    topic: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class Produced:
    """`refused_rows`: the records that it did not take, where it names them."""

    error: int
    base_offset: int
    start_offset: int
    message: str | None
    refused_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Produce:
    """One record batch, written to all replicas in sync."""

    place: Place
    batch: KafkaBatch
    timeout_ms: int

    def prepare(self, versions: Versions) -> Prepared[Produced]:
        version = _version(versions, _PRODUCE, "Produce", _PRODUCE_BY_ID, _PRODUCE_BY_NAME)
        before = b"".join(
            (
                text(None),
                int16(ALL_IN_SYNC),
                int32(self.timeout_ms),
                one_item(),
                _topic(self.place, version >= _PRODUCE_BY_ID),
                one_item(),
                int32(self.place.partition),
                varint(len(self.batch) + 1),
                self.batch.head,
            )
        )
        body = before, self.batch.records, 3 * NO_TAGS

        def read(answer: Reader) -> Produced:
            def refused_record() -> tuple[int, str | None]:
                row, said = answer.int32(), answer.text()
                answer.tags()
                return row, said

            def partition() -> Produced:
                answer.int32()
                error, base_offset = answer.int16(), answer.int64()
                answer.int64()  # the append time, where the topic has its own
                start = answer.int64()
                refused = answer.array(refused_record)
                message = answer.text() or next((said for _, said in refused if said), None)
                answer.tags()
                rows = tuple(row for row, _ in refused)
                return Produced(error, base_offset, start, message, rows)

            return _only(answer, version >= _PRODUCE_BY_ID, partition)

        return Prepared(_PRODUCE, version, body, read)


@dataclass(frozen=True, slots=True)
class Fetched:
    error: int
    high_watermark: int
    start_offset: int
    batches: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Record batches as they are stored, from the one that holds the offset on."""

    place: Place
    offset: int
    max_bytes: int

    def prepare(self, versions: Versions) -> Prepared[Fetched]:
        version = _version(versions, _FETCH, "Fetch", _FETCH_BY_ID, _FETCH_BY_NAME)
        partition = b"".join(
            (
                int32(self.place.partition),
                int32(-1),  # whatever the leader's epoch
                int64(self.offset),
                int32(-1),
                int64(-1),
                int32(self.max_bytes),
                NO_TAGS,
            )
        )
        topic = _topic(self.place, version >= _FETCH_BY_ID) + array([partition]) + NO_TAGS
        no_session = int32(0) + int32(-1)
        body = b"".join(
            (
                int32(-1),
                int32(0),  # do not wait
                int32(0),
                int32(self.max_bytes),
                int8(0),  # read uncommitted: all that is there
                no_session,
                array([topic]),
                array([]),
                text(""),
                NO_TAGS,
            )
        )

        def read(answer: Reader) -> Fetched:
            def aborted() -> None:
                answer.int64()
                answer.int64()
                answer.tags()

            def partition() -> Fetched:
                answer.int32()
                error, high = answer.int16(), answer.int64()
                answer.int64()
                start = answer.int64()
                answer.array(aborted)
                answer.int32()
                batches = answer.blob() or b""
                answer.tags()
                return Fetched(error, high, start, batches)

            answer.int32()
            whole = answer.int16()
            answer.int32()
            if whole:
                return Fetched(whole, -1, -1, b"")
            return _only(answer, version >= _FETCH_BY_ID, partition)

        return Prepared(_FETCH, version, body, read)


@dataclass(frozen=True, slots=True)
class ListedOffset:
    error: int
    offset: int


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """The first or the next offset of a partition: `at` is EARLIEST or LATEST."""

    place: Place
    at: int

    def prepare(self, versions: Versions) -> Prepared[ListedOffset]:
        version = _version(versions, _LIST_OFFSETS, "ListOffsets", 6)
        partition = int32(self.place.partition) + int32(-1) + int64(self.at) + NO_TAGS
        topic = text(self.place.topic) + array([partition]) + NO_TAGS
        body = int32(-1) + int8(0) + array([topic]) + NO_TAGS

        def read(answer: Reader) -> ListedOffset:
            def partition() -> ListedOffset:
                answer.int32()
                error = answer.int16()
                answer.int64()
                offset = answer.int64()
                answer.int32()
                answer.tags()
                return ListedOffset(error, offset)

            answer.int32()
            return _only(answer, False, partition)

        return Prepared(_LIST_OFFSETS, version, body, read)


@dataclass(frozen=True, slots=True)
class GivenProducer:
    error: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer id that nobody had before."""

    def prepare(self, versions: Versions) -> Prepared[GivenProducer]:
        version = _version(versions, _INIT_PRODUCER_ID, "InitProducerId", 2)

        def read(answer: Reader) -> GivenProducer:
            answer.int32()
            return GivenProducer(answer.int16(), answer.int64(), answer.int16())

        return Prepared(_INIT_PRODUCER_ID, version, text(None) + int32(2**31 - 1) + NO_TAGS, read)


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """What a broker remembers of a producer in one partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class DescribedProducers:
    error: int
    producers: tuple[ActiveProducer, ...]


@dataclass(frozen=True, slots=True)
class DescribeProducers:
    """Who has written to a partition lately, as its leader remembers."""

    place: Place

    def prepare(self, versions: Versions) -> Prepared[DescribedProducers]:
        version = _version(versions, _DESCRIBE_PRODUCERS, "DescribeProducers", 0)
        topic = text(self.place.topic) + array([int32(self.place.partition)]) + NO_TAGS

        def read(answer: Reader) -> DescribedProducers:
            def producer() -> ActiveProducer:
                found = ActiveProducer(answer.int64(), answer.int32(), answer.int32())
                answer.int64()
                answer.int32()
                answer.int64()
                answer.tags()
                return found

            def partition() -> DescribedProducers:
                answer.int32()
                error = answer.int16()
                answer.text()
                producers = tuple(answer.array(producer))
                answer.tags()
                return DescribedProducers(error, producers)

            answer.int32()
            return _only(answer, False, partition)

        return Prepared(_DESCRIBE_PRODUCERS, version, array([topic]) + NO_TAGS, read)


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """`leaders` has the node of each partition; -1 where there is none now."""

    error: int
    name: str
    topic_id: UUID
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """`brokers` has where each node listens."""

    cluster_id: str
    brokers: Mapping[int, tuple[str, int]]
    topics: Mapping[str, TopicMetadata]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What topics there are, of these names."""

    topics: tuple[str, ...]

    def prepare(self, versions: Versions) -> Prepared[ClusterMetadata]:
        version = _version(versions, _METADATA, "Metadata", 12)
        wanted = [UUID(int=0).bytes + text(name) + NO_TAGS for name in self.topics]
        body = array(wanted) + int8(0) + int8(0) + NO_TAGS

        def read(answer: Reader) -> ClusterMetadata:
            def broker() -> tuple[int, tuple[str, int]]:
                node, host, port = answer.int32(), answer.text() or "", answer.int32()
                answer.text()
                answer.tags()
                return node, (host, port)

            def partition() -> tuple[int, int]:
                answer.int16()
                number, leader = answer.int32(), answer.int32()
                answer.int32()
                for _ in range(3):
                    answer.array(answer.int32)
                answer.tags()
                return number, leader

            def topic() -> TopicMetadata:
                error, name, topic_id = answer.int16(), answer.text() or "", answer.uuid()
                answer.int8()
                leaders = dict(answer.array(partition))
                answer.int32()
                answer.tags()
                return TopicMetadata(error, name, topic_id, leaders)

            answer.int32()
            brokers = dict(answer.array(broker))
            cluster_id = answer.text() or ""
            answer.int32()
            topics = {found.name: found for found in answer.array(topic)}
            return ClusterMetadata(cluster_id, brokers, topics)

        return Prepared(_METADATA, version, body, read)


def _topic(place: Place, by_id: bool) -> bytes:
    return place.topic_id.bytes if by_id else text(place.topic)


def _only(answer: Reader, by_id: bool, partition: Callable[[], A]) -> A:
    """The one partition of the one topic that was asked for."""

    def topic() -> Any:
        if by_id:
            answer.uuid()
        else:
            answer.text()
        found = answer.array(partition)
        answer.tags()
        return found

    ((only,),) = answer.array(topic)
    return only  # type: ignore[no-any-return]
