"""Consumer and Publisher for those without asyncio: the same ones, on a loop in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, Unpack

from duolog.client.consumer import AsyncConsumer
from duolog.client.messages import Headers, NewRecord
from duolog.client.option_words import ConsumerWords, PublisherWords
from duolog.client.options import Topics
from duolog.client.portal import Portal
from duolog.client.publisher import AsyncPublisher
from duolog.client.records import ConsumedRecord, Given, RecordTable
from duolog.log.model import Placed


class Consumer:
    """Reads topics for a group, or for itself. Use it as a context manager.

        with Consumer("orders", url="http://127.0.0.1:7070", group="billing") as consumer:
            for record in consumer:
                print(record.value)

    It may be used from several threads, but polls take turns.
    """

    def __init__(self, topics: Topics, **options: Unpack[ConsumerWords]) -> None:
        self._portal = Portal("duolog-consumer")
        try:
            self._consumer = self._portal.make(lambda: AsyncConsumer(topics, **options))
        except BaseException:
            self._portal.close()
            raise

    def __repr__(self) -> str:
        return repr(self._consumer).replace("AsyncConsumer", "Consumer", 1)

    def poll(self, timeout_seconds: float = 1.0) -> list[ConsumedRecord]:
        """The next records, up to `max_records`; none when there are none in this time.

        With `auto_ack`, what the poll before gave is done now, but for what `nack` gave back.
        """
        with self._given_back_if_interrupted():
            return self._portal.run(self._consumer.poll(timeout_seconds))

    def poll_tables(self, timeout_seconds: float = 1.0) -> list[RecordTable]:
        """The next records as Arrow, a table a topic; none when there are none in this time."""
        with self._given_back_if_interrupted():
            return self._portal.run(self._consumer.poll_tables(timeout_seconds))

    @contextmanager
    def _given_back_if_interrupted(self) -> Iterator[None]:
        """By Ctrl-C a poll may be left that has just taken records."""
        taken_before = self._consumer.times_taken
        try:
            yield
        except KeyboardInterrupt:
            self._portal.run(self._consumer.give_back_taken(taken_before))
            raise

    def __iter__(self) -> Self:
        """Records one by one. With `auto_ack`, what an earlier loop was left with comes first."""
        self._consumer.begin_loop()
        return self

    def __next__(self) -> ConsumedRecord:
        record = self._consumer.next_ready()
        if record is None:
            record = self._portal.run(self._consumer.next_waited())
        if record is None:
            raise StopIteration
        return record

    def ack(self, *given: Given, wait: str | None = None, timeout_seconds: float = 30.0) -> None:
        """These are done; without any, all that was handed out. Durable when it returns.

        The group's position moves over what is done without a gap. With `wait="settled"`, it
        returns when Kafka has the group at the same place; NotSettled if that takes longer.
        """
        acking = self._consumer.ack(*given, wait=wait, timeout_seconds=timeout_seconds)
        self._portal.run(acking)

    def nack(self, record: ConsumedRecord, reason: object = None) -> None:
        """This record could not be used: it comes again after a while.

        After the last of `max_attempts` it goes to `dead_letter_topic`, with the reason (an
        exception, or a text), and is done; without such a topic AttemptsExhausted is raised.
        """
        self._portal.run(self._consumer.nack(record, reason))

    def commit(self) -> None:
        """Tell the host what is done, where it does not know it yet."""
        self._portal.run(self._consumer.commit())

    def assigned(self, topic: str) -> frozenset[int]:
        """The partitions of a topic that are this consumer's now."""
        return self._consumer.assigned(topic)

    def position(self, topic: str, partition: int = 0) -> int:
        """The offset that is handed out next."""
        return self._portal.run(self._consumer.position(topic, partition))

    def seek(self, topic: str, offset: int, partition: int = 0) -> None:
        """Go on from this offset, in this consumer. The group's position stays until an ack
        goes beyond it.
        """
        self._portal.run(self._consumer.seek(topic, offset, partition))

    def close(self, *, wait: str | None = None, timeout_seconds: float = 30.0) -> None:
        """Tell the host what is done, and let go of it. Closing again does nothing.

        With `wait="settled"` the group is handed over: a Kafka consumer that starts then goes on
        with the next record. NotSettled if that takes longer; it is closed all the same.
        """
        if self._portal.is_closed:
            return
        try:
            self._portal.run(self._consumer.close(wait=wait, timeout_seconds=timeout_seconds))
        finally:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(kind, error, trace)

    def _end(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._portal.is_closed:
            return
        try:
            self._portal.run(self._consumer.__aexit__(kind, error, trace))
        finally:
            self._portal.close()


class Publisher:
    """Publishes to topics; records are durable when a call returns. Safe for many threads."""

    def __init__(self, **options: Unpack[PublisherWords]) -> None:
        self._portal = Portal("duolog-publisher")
        try:
            self._publisher = self._portal.make(lambda: AsyncPublisher(**options))
        except BaseException:
            self._portal.close()
            raise

    def __repr__(self) -> str:
        return repr(self._publisher).replace("AsyncPublisher", "Publisher", 1)

    @property
    def next_sequence(self) -> int:
        """With `writer`: the number of the next record, to be kept for a restart."""
        return self._publisher.next_sequence

    def last_sequence(self, writer: str | None = None) -> int | None:
        """The highest number that a writer has published, this one if none is named; None when the
        log does not know the writer, or has forgotten it.
        """
        return self._portal.run(self._publisher.last_sequence(writer))

    def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        op: str | None = None,
        table: str | None = None,
        payload_mode: str | None = None,
        ts_ms: int | None = None,
    ) -> Placed:
        """Write one record; where it lies. Bytes go as they are, text as UTF-8, else as JSON."""
        record = NewRecord(value, key, headers, partition, op, table, payload_mode, ts_ms)
        return self.publish_many(topic, [record])[0]

    def publish_many(self, topic: str, records: Iterable[NewRecord | Any]) -> list[Placed]:
        """Write records, or values without keys; where each lies.

        All or none of up to 1,000; more go in several requests, and then OutcomeUnknown and other
        errors may leave the first ones written.
        """
        return self._portal.run(self._publisher.publish_many(topic, records))

    def publish_rows(
        self,
        table: str,
        op: str,
        rows: Iterable[Mapping[str, Any]],
        key_columns: Sequence[str] = (),
        *,
        before: Iterable[Mapping[str, Any] | None] | None = None,
        unrouted: str = "fail",
        ts_ms: int | None = None,
    ) -> list[Placed]:
        """Write rows of a table to every topic that has a route for them; where each record lies.

        `op` is insert, update, delete or read; `ts_ms` when the change was made. `before` has the
        row before each update or delete, and None where it is not known. Rows that no route takes
        are refused, or left out with `unrouted="drop"`. All or none of up to 250 rows; more go in
        several requests.
        """
        publishing = self._publisher.publish_rows(
            table, op, rows, key_columns, before=before, unrouted=unrouted, ts_ms=ts_ms
        )
        return self._portal.run(publishing)

    def close(self) -> None:
        """Let go of the host. Closing again does nothing."""
        if self._portal.is_closed:
            return
        try:
            self._portal.run(self._publisher.close())
        finally:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
