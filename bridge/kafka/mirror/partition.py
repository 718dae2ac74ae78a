"""One partition's way into Kafka, from recovery to its end.

    recovering -> mirroring -> recovering ...      after a lost connection, a refusal, a new leader
               -> halted -> recovering             until what it says is settled
               -> paused -> recovering             until it is resumed; what is on its way arrives

Three tasks while it mirrors: `_send` reads the log and sends batches, several at once; `_collect`
takes the answers in their order and grows the runs; `_keep` stores runs now and then. When one
ends, all end, and the partition recovers: it asks Kafka how far it is, and goes on behind that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from duolog.bridge.kafka.mirror.connections import Reconnected
from duolog.bridge.kafka.mirror.pieces import refused_rows, unskipped, with_skips
from duolog.bridge.kafka.mirror.reactions import Reaction, halted_by, reaction_to
from duolog.bridge.kafka.mirror.reading import (
    READ_BYTES,
    Made,
    Making,
    Stretch,
    groups,
    hole_at_start,
)
from duolog.bridge.kafka.mirror.recovering import Recovery
from duolog.bridge.kafka.mirror.recovery import placed
from duolog.bridge.kafka.mirror.refused import (
    burnt_out,
    damaged,
    halted_at,
    set_aside,
    why_refused,
)
from duolog.bridge.kafka.mirror.shared import Shared, WhenRefused, shown
from duolog.bridge.kafka.mirror.storing import StoredRuns
from duolog.bridge.kafka.mirror.suspicion import Suspicion, copied
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.bridge.kafka.mirror.trimming import Trimming
from duolog.bridge.kafka.wire.record_batch import KafkaBatch
from duolog.bridge.kafka.wire.requests import Produced
from duolog.errors import (
    DamagedBatch,
    DuologError,
    KafkaRefused,
    KafkaTopicMissing,
    KafkaTopicRecreated,
    MirrorDiverged,
    MirrorHalted,
    MirrorMeetsDamage,
    MirrorOfCopy,
    MirrorRefused,
    OffsetOutOfRange,
)
from duolog.log.fetched import EncodedBatch, FetchedEncoded
from duolog.log.mirror_model import Mirror, Skip, SkipReason
from duolog.log.model import TopicPartition

_FIRST_PAUSE_SECONDS: Final = 0.05
_LAST_ANSWERS_SECONDS: Final = 2.0
_REMEMBERED_SECONDS: Final = 60.0  # a leader remembers producers for a day, unless told otherwise
_NEVER: Final = float("-inf")
_RUNS_IN_DOUBT = (KafkaTopicMissing, KafkaTopicRecreated, MirrorDiverged, MirrorOfCopy)


class Phase(StrEnum):
    """What a partition's mirror does."""

    RECOVERING = "recovering"
    MIRRORING = "mirroring"
    HALTED = "halted"
    PAUSED = "paused"


class _Again(Exception):
    """Recover: something is not as it was thought."""


@dataclass(frozen=True, slots=True)
class _Sent:
    stretch: Stretch
    answer: asyncio.Task[Produced]


class PartitionMirror:
    """Mirrors one partition for as long as `run` is not cancelled."""

    def __init__(self, side: TopicSide, partition: int, shared: Shared) -> None:
        self.side = side
        self.partition = partition
        self.phase = Phase.RECOVERING
        self.trouble: DuologError | None = None  # why it is halted, or does not get on
        self.settled = False  # recovered, and nothing has happened that puts the runs in doubt
        self.foreign = 0  # records of others that were passed over, since this started
        self._shared = shared
        self._where = TopicPartition(side.topic.id, partition)
        self._runs = StoredRuns(shared, side.topic.id, partition)
        self._most_bytes: int | None = None  # when Kafka takes less than its settings say
        self._sent: asyncio.Queue[_Sent] = asyncio.Queue()
        self._under_way: set[asyncio.Task[Produced]] = set()
        self._known_at = _NEVER
        self._slots = asyncio.Semaphore(shared.options.batches_in_flight)
        self._trimming = Trimming(shared, side, self._runs, self._where)
        self._suspicion = Suspicion(shared, side)
        self._paused = asyncio.Event()
        self._resumed = asyncio.Event()
        self._resumed.set()

    @property
    def mirror(self) -> Mirror | None:
        """How far it is, as of now: what is stored may be a moment behind."""
        return self._runs.now

    def pause(self, wanted: bool) -> None:
        """Send nothing more until this is called with False."""
        if wanted is self._paused.is_set():
            return
        if wanted:
            self._paused.set()
            self._resumed.clear()
        else:
            self._resumed.set()
            self._paused.clear()

    async def run(self) -> None:
        """Mirror, whatever happens, until it is cancelled. Then what is known is stored."""
        pause = _FIRST_PAUSE_SECONDS
        reached = -1
        try:
            while True:
                try:
                    if self._paused.is_set() and await self._runs.load() is None:
                        await self._rest()  # nothing to be found out, and nothing to be made
                    await self._recover()
                    reached = self._now.next_log_offset
                    self.settled = True
                    if self._paused.is_set():
                        await self._rest()
                        continue
                    if not self._is_in_doubt:
                        self._goes_on()
                    await self._mirror_on()
                except (_Again, Reconnected):
                    pause = self._pause_after(pause, reached)
                except MirrorHalted as halted:
                    self._stands(Phase.HALTED, halted)
                    pause = self._shared.options.retry_halted_seconds
                except DuologError as error:
                    self._stands(Phase.RECOVERING, error)
                    pause = self._pause_after(pause, reached)
                await asyncio.sleep(pause)
                if self.phase is Phase.HALTED:
                    pause = _FIRST_PAUSE_SECONDS
        finally:
            with suppress(DuologError):
                await self._runs.store()

    def _pause_after(self, pause: float, reached: int) -> float:
        """Twice as long each time that nothing was gained."""
        if self._runs.now is not None and self._runs.now.next_log_offset > reached >= 0:
            return _FIRST_PAUSE_SECONDS
        return min(2 * pause, self._shared.options.longest_pause_seconds)

    def _goes_on(self) -> None:
        if self.trouble is not None:
            self._say("mirror.goes_on")
        self.phase, self.trouble = Phase.MIRRORING, None

    @property
    def _is_in_doubt(self) -> bool:
        """Whether only the next batch says if it gets on: Kafka may take it, and the log may decode
        it; or not yet.
        """
        behind = self._shared.heads.next_offset(self._where) > self._now.next_log_offset
        return behind and isinstance(self.trouble, MirrorRefused | MirrorMeetsDamage)

    async def _rest(self) -> None:
        """Until it is resumed."""
        self._say("mirror.paused")
        self.phase, self.trouble = Phase.PAUSED, None
        await self._resumed.wait()
        self._say("mirror.resumed")
        self.phase = Phase.RECOVERING

    def _stands(self, phase: Phase, trouble: DuologError) -> None:
        phase = Phase.PAUSED if self._paused.is_set() else phase
        if phase is not Phase.HALTED:  # each time: how often it is written is decided elsewhere
            self._say("mirror.waits", **shown(trouble))
        elif self.phase is not phase or str(trouble) != str(self.trouble or ""):
            self._say("mirror.halted", **shown(trouble))
        self.phase, self.trouble = phase, trouble
        if isinstance(trouble, _RUNS_IN_DOUBT):
            self.settled = False

    def _say(self, event: str, **fields: object) -> None:
        self._shared.say(event, topic=self.side.topic.name, partition=self.partition, **fields)

    @property
    def _now(self) -> Mirror:
        assert self._runs.now is not None  # noqa: S101 - after the first recovery
        return self._runs.now

    async def _recover(self) -> None:
        if self.phase is Phase.MIRRORING:
            self.phase = Phase.RECOVERING
        await self.side.look(self.side.looks)
        recovery = Recovery(self.side, self.partition, self._shared, self._runs)
        try:
            recovered = await recovery.run()
        except KafkaRefused as refused:
            if reaction_to(refused.error) is Reaction.HALT:
                where = self.side.kafka_topic, self.partition
                raise halted_by(refused.error, *where, str(refused)) from refused
            raise
        met = recovered.met
        self.foreign += met.foreign
        if met.first is not None:
            self._suspicion.notice(met.first)
        self._known_at = _seconds() if recovered.is_known else _NEVER
        await self._check_others(at_once=True)

    async def _check_others(self, *, at_once: bool = False) -> None:
        """Halt when others write what we write; durably, so that it does not go on by itself."""
        found = await self._suspicion.look(self._now, at_once=at_once)
        if found is not None:
            self._runs.now = replace(self._now, copied_at=found.kafka_offset)
            await self._runs.store()
        if self._now.copied_at is not None:
            self.settled = True  # the runs are what they were
            raise copied(replace(self._now, topic=self.side.topic.name), self._now.copied_at)

    # -- mirroring

    async def _mirror_on(self) -> None:
        self._sent = asyncio.Queue()
        works = (self._send(), self._collect(), self._keep(), self._until_paused())
        tasks = [asyncio.create_task(work) for work in works]
        is_ending = False
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._paused.is_set():
                await self._last_answers(tasks[0])
        except asyncio.CancelledError:
            is_ending = True
            await self._last_answers(tasks[0])
            raise
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            # What is on its way arrives before Kafka is asked how far it is.
            if self._under_way and not is_ending:
                await asyncio.wait(self._under_way, timeout=_LAST_ANSWERS_SECONDS)
        failures = [e for e in ended if e and not isinstance(e, asyncio.CancelledError)]
        raise failures[0] if failures else _Again

    async def _until_paused(self) -> None:
        await self._paused.wait()

    async def _last_answers(self, sending: asyncio.Task[None]) -> None:
        """Send no more; what is on its way is waited for, and counted."""
        sending.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._sent.join(), _LAST_ANSWERS_SECONDS)

    async def _send(self) -> None:
        """What comes next is read and made while this is being sent."""
        made: Made | None = None
        reading = asyncio.create_task(self._read(self._now.next_log_offset))
        try:
            while True:
                try:
                    made = await reading
                except DamagedBatch as met:
                    await self._sent.join()  # what is before it counts
                    raise await self._stopped_by(met) from met
                if made.refused is None:
                    reading = asyncio.create_task(self._read(made.stop, made.left))
                    await self._send_made(made)
                else:  # what is skipped now, all that follows has to count
                    await self._send_made(made)
                    await self._send_good(made.refused)
                    reading = asyncio.create_task(self._read(made.stop, made.left))
        finally:
            reading.cancel()
            (unsent,) = await asyncio.gather(reading, return_exceptions=True)
            if isinstance(unsent, Made) and unsent is not made:
                self._shared.portions.release()

    async def _read(self, at: int, found: Sequence[FetchedEncoded] = ()) -> Made:
        """The next batches. Whoever has sent them releases their portion."""
        shared = self._shared
        while True:
            await shared.portions.acquire()
            hole: EncodedBatch | None = None
            try:
                if not found:
                    fetched = await self._fetch(at)
                    found, hole = groups(fetched), hole_at_start(fetched)
                if found:
                    now_ms = shared.clock.now_ms()
                    return await shared.in_thread(self._making().made_of, found, now_ms)
                if hole is not None:
                    await self._pass_over(at, hole.next_offset)
                    at = hole.next_offset
            except BaseException:
                shared.portions.release()
                raise
            shared.portions.release()
            await shared.heads.beyond(self._where, at)

    async def _pass_over(self, first: int, stop: int) -> None:
        """What was skipped in the log is skipped here: durably, before what follows is sent."""
        more = [
            Skip(begin, end - begin, SkipReason.DAMAGED)
            for begin, end in unskipped(first, stop, self._now.skips)
        ]
        self._runs.now = replace(self._now, skips=with_skips(self._now.skips, more))
        await self._runs.store()
        said = "it was damaged, and skipped in the log"
        self._say("mirror.skipped", offset=first, records=stop - first, said=said)
        if isinstance(self.trouble, MirrorMeetsDamage):
            self._goes_on()

    async def _stopped_by(self, met: DamagedBatch) -> Exception:
        """The log looks for itself, and remembers it; what was skipped meanwhile is no trouble."""
        look, topic = self._shared.log.look_for_damage, self.side.topic
        try:
            found = await self._shared.in_thread(look, topic.id, self.partition, met.first_offset)
        except OffsetOutOfRange:
            return _Again()
        return _Again() if found is None else damaged(met)

    async def _send_made(self, made: Made) -> None:
        try:
            await self._send_batches(made.batches)
        finally:
            self._shared.portions.release()

    async def _send_good(self, stretch: Stretch) -> None:
        for part in await self._good_parts(stretch):
            await self._send_batches(await self._shared.in_thread(self._making().batches_of, part))

    def _making(self) -> Making:
        limits, shared = self.side.limits, self._shared
        most = min(limits.max_batch_bytes, self._most_bytes or 1 << 40)
        return Making(
            self._now,
            limits,
            most,
            shared.producer,
            shared.settings.compression,
            shared.options.offset_header,
        )

    async def _fetch(self, at: int) -> FetchedEncoded:
        fetch, topic = self._shared.log.fetch_encoded, self.side.topic
        try:
            return await self._shared.in_thread(
                fetch, topic.id, self.partition, at, max_bytes=READ_BYTES
            )
        except OffsetOutOfRange:
            raise _Again from None  # retention was quicker: recovery skips what is gone

    async def _good_parts(self, stretch: Stretch) -> list[Stretch]:
        """The parts that Kafka takes; the others are skipped, durably, before this returns."""
        while True:
            parts = self._making().parts_of(stretch)
            if not await self._refuse_some(parts):
                return parts

    async def _refuse_some(self, parts: list[Stretch]) -> bool:
        limits, now_ms = self.side.limits, self._shared.clock.now_ms()
        for part in parts:
            for refused in refused_rows(part.records, limits, now_ms):
                first, stop = part.first + refused.start, part.first + refused.stop
                said = why_refused(self.side.kafka_topic, refused, limits)
                await self._refuse(part.part(first, stop), refused.reason, said)
                return True
        return False

    async def _refuse(self, refused: Stretch, reason: SkipReason, said: str) -> None:
        topic, options = self.side.topic, self._shared.options
        if options.when_refused is WhenRefused.HALT:
            raise halted_at(topic, self.partition, refused.first, said)
        count = refused.stop - refused.first
        skips = with_skips(self._now.skips, [Skip(refused.first, count, reason)])
        if options.fuse.burns(skips, refused.stop):
            raise burnt_out(topic, self.partition, refused.stop - 1, said, options.fuse)
        log, number = self._shared.log, self.partition
        await self._shared.in_thread(set_aside, log, topic, number, refused, reason, said)
        skip = Skip(refused.first, count, reason)
        self._runs.now = replace(self._now, skips=with_skips(self._now.skips, [skip]))
        await self._runs.store()
        self._say("mirror.skipped", offset=refused.first, records=count, said=said)

    async def _send_batches(self, batches: list[tuple[Stretch, KafkaBatch]]) -> None:
        place = self.side.place(self.partition)
        for piece, batch in batches:
            await self._slots.acquire()
            try:
                taken = await self._shared.budget.take(len(batch))
            except asyncio.CancelledError:
                self._slots.release()
                raise
            answer = asyncio.create_task(self._shared.port.produce(place, batch))
            self._under_way.add(answer)
            answer.add_done_callback(partial(self._answered, taken))
            self._sent.put_nowait(_Sent(piece, answer))
            if _seconds() > self._known_at + _REMEMBERED_SECONDS:
                # A leader that does not know us takes any batch for the first, also when the one
                # before it was refused: none follows until it has taken one, which `_collect` says.
                await self._sent.join()

    def _answered(self, taken: int, answer: asyncio.Task[Produced]) -> None:
        self._under_way.discard(answer)
        self._shared.budget.give_back(taken)
        self._slots.release()
        if not answer.cancelled():
            answer.exception()  # seen, also when nobody waits for this answer any more

    async def _collect(self) -> None:
        while True:
            sent = await self._sent.get()
            answer = await sent.answer
            if answer.error:
                await self._react(sent.stretch, answer)
            else:
                self._take(sent.stretch, answer.base_offset)
            self._sent.task_done()

    def _take(self, stretch: Stretch, base_offset: int) -> None:
        """Kafka has it."""
        mirror = self._now
        hole = base_offset - mirror.next_kafka_offset
        if hole < 0 or stretch.first != mirror.next_log_offset:
            raise _Again  # another worker's, or in a topic that was made anew: recovery says
        if hole:
            self.foreign += hole
            self._say("mirror.foreign_records", records=hole, kafka_offset=base_offset - hole)
            self._suspicion.notice(base_offset - hole)
        runs = placed(mirror, base_offset, stretch.stop - stretch.first)
        self._runs.now = replace(mirror, runs=runs)
        self._known_at = _seconds()
        if self.trouble is not None:
            self._goes_on()

    async def _react(self, stretch: Stretch, answer: Produced) -> None:
        reaction = reaction_to(answer.error)
        self._say("mirror.refused", error=answer.error, offset=stretch.first, said=answer.message)
        if reaction is Reaction.HALT:
            raise halted_by(answer.error, self.side.kafka_topic, self.partition, answer.message)
        if reaction is Reaction.JUDGE:
            await self._judge(stretch, answer)
        raise _Again

    async def _judge(self, stretch: Stretch, answer: Produced) -> None:
        """Kafka refused what its settings allow: its own clock, or a limit of the broker."""
        limits = self.side.limits
        await self.side.look(self.side.looks)
        if self.side.limits != limits:
            return
        said = answer.message or f"Kafka refuses it (error {answer.error})"
        count = stretch.stop - stretch.first
        rows = answer.refused_rows or ((0,) if count == 1 else ())
        for row in rows:
            at = stretch.first + row
            reason = SkipReason.TIME_REFUSED if answer.refused_rows else SkipReason.TOO_LARGE
            await self._refuse(stretch.part(at, at + 1), reason, said)
        if not rows:
            self._most_bytes = max(1, int(stretch.records.nbytes) // 2)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._shared.options.store_every_seconds)
            await self._runs.store()
            await self._check_others()
            await self._trimming.follow(self._say)


def _seconds() -> float:
    return asyncio.get_running_loop().time()
