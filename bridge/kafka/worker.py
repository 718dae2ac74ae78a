"""The Kafka worker: a process of its own beside the host, so that neither delays the other.

Run as `python -m duolog.bridge.kafka.worker` by `duolog serve`, which gives it a line of JSON:

    {"folder": …, "bootstrap_servers": …, "settings": {…}, "when_refused": "dlq" | "halt",
     "groups": …, "groups.exclude": …, "offset_header": …, "log_level": …, "log_json": …}

All but the first two may be left out.

It reaches the log through the host, and tells it a line of JSON now and then: how it is. The host
asks it questions in between (`serve/exchange.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import pyarrow as pa

from duolog.bridge.journal import Journal, JournalHandler, Level
from duolog.bridge.kafka.events import Events
from duolog.bridge.kafka.feed.filters import EVERY_GROUP, EXCLUDED_BY_DEFAULT, GroupFilter
from duolog.bridge.kafka.members.left_behind import send_away
from duolog.bridge.kafka.members.proxies import CLIENT_PREFIX, Proxies
from duolog.bridge.kafka.mirror.mirroring import KafkaMirror
from duolog.bridge.kafka.mirror.shared import MirrorOptions, WhenRefused, shown
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.bridge.kafka.positions.questions import GroupQuestions
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.status import History, summary, summary_of_groups
from duolog.bridge.serve.answering import Answering
from duolog.bridge.serve.leash import NOT_RUNNABLE, settings_from_host, tell_host
from duolog.errors import DuologError, InvalidSetting, LogBusy
from duolog.flock import locked
from duolog.output import print_tracebacks_safely
from duolog.reach import reach

FAILED: Final = 1
_TELL_EVERY_SECONDS: Final = 1.0
_TELL_AGAIN_SECONDS: Final = 5.0  # also when nothing has changed: silence means that it stands
_END_SECONDS: Final = 2.5  # from the signal on, for all that waits for Kafka
_LAST_WORDS_SECONDS: Final = 0.5
_LOOK_AGAIN_SECONDS: Final = 0.05
_LOCK_PATIENCE_SECONDS: Final = 10.0  # an old worker may be on its way out

Tell = Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What the host hands over."""

    folder: Path
    kafka: KafkaSettings
    options: MirrorOptions
    groups: GroupFilter
    log_level: Level = Level.INFO
    log_json: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Checked settings."""
        known = {
            *("folder", "bootstrap_servers", "settings", "when_refused"),
            *("groups", "groups.exclude", "offset_header", "log_level", "log_json"),
        }
        strange, missing = given.keys() - known, {"folder", "bootstrap_servers"} - given.keys()
        if strange or missing:
            raise InvalidSetting(
                f"The Kafka worker takes {', '.join(sorted(known))}; "
                f"{', '.join(sorted(strange | missing))} is too much or missing."
            )
        word = given.get("when_refused", WhenRefused.DLQ.value)
        if word not in list(WhenRefused):
            raise InvalidSetting(f"when_refused is one of {', '.join(WhenRefused)}; got {word!r}.")
        return cls(
            Path(given["folder"]),
            KafkaSettings.of(given["bootstrap_servers"], given.get("settings")),
            MirrorOptions(WhenRefused(word), given.get("offset_header")),
            GroupFilter.of(
                given.get("groups", EVERY_GROUP), given.get("groups.exclude", EXCLUDED_BY_DEFAULT)
            ),
            _level(given.get("log_level", "info")),
            given.get("log_json", False) is True,
        )


def _level(word: str) -> Level:
    levels = {level.name.lower(): level for level in Level}
    if word not in levels:
        raise InvalidSetting(f"log_level is one of {', '.join(levels)}; got {word!r}.")
    return levels[word]


def main() -> int:
    """The process, from its start to its end; its exit code."""
    # Arrow's own allocator keeps 100 MB for its threads, and is no faster on batches of this size.
    pa.set_memory_pool(pa.system_memory_pool())
    print_tracebacks_safely()
    journal = Journal()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it says is in our errors
    answering = Answering(journal)
    try:
        settings = WorkerSettings.of(settings_from_host(hear=answering.hear))
    except InvalidSetting as error:
        tell_host({"state": "failed", "code": error.code, "error": str(error)})
        return NOT_RUNNABLE
    journal.show(settings.log_level, as_json=settings.log_json)
    logging.getLogger().addHandler(JournalHandler(journal))
    threading.excepthook = partial(_tell_of_thread, journal)
    try:  # not closed: that would wait for threads that wait for Kafka
        return asyncio.Runner().run(work(settings, journal, tell_host, answering))
    except Exception as error:  # noqa: BLE001 - the host starts it again, and its journal says why
        journal.error("worker.failed", error)
        return FAILED


def _tell_of_thread(journal: Journal, told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None:
        journal.error("worker.thread_failed", told.exc_value)


async def work(
    settings: WorkerSettings, journal: Journal, tell: Tell, answering: Answering | None = None
) -> int:
    """Mirror until SIGTERM or SIGINT; the exit code."""
    answering = answering or Answering(journal)
    working = asyncio.current_task()
    assert working is not None  # noqa: S101 - this is one
    loop, end_at = asyncio.get_running_loop(), float("inf")

    def end() -> None:
        nonlocal end_at
        end_at = min(end_at, loop.time() + _END_SECONDS)
        working.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    try:
        async with AsyncExitStack() as held:
            await held.enter_async_context(_alone(settings.folder))
            log = held.enter_context(reach(settings.folder))
            events = Events(journal)
            mirror = KafkaMirror(log, settings.kafka, options=settings.options, say=events)
            own = OwnCommits()
            settling = GroupSettling(
                log,
                settings.kafka,
                groups=settings.groups,
                mirrors=mirror.mirrors,
                own=own,
                say=events,
            )
            telling = asyncio.create_task(_tell(mirror, settling, tell))
            settling.start()
            GroupQuestions(settling, mirror.status).answer_by(answering)
            proxies = Proxies(
                settings.kafka,
                settings.groups,
                mirror.mirrors,
                mirror.is_being_found_out,
                settling.settle,
                answering.tell,
                own,
            )
            for what, handle in proxies.handlers().items():
                answering.handle(what, handle)
            seating = asyncio.create_task(_seat(settings, log.log_id, proxies, answering, journal))
            answering.start()
            try:
                await mirror.run()
            finally:
                telling.cancel()
                seating.cancel()
                await _end(proxies, settling, answering, end_at)
    except asyncio.CancelledError:
        tell({"state": "stopped"})
        return 0
    except DuologError as error:
        journal.error("mirror.failed", error)
        tell({"state": "failed", "code": error.code, "error": str(error)})
        return NOT_RUNNABLE if isinstance(error, InvalidSetting) else FAILED
    return FAILED


async def _end(
    proxies: Proxies, settling: GroupSettling, answering: Answering, end_at: float
) -> None:
    """In order, where Kafka answers. Where it does not, it is as if the worker were killed now: the
    next one sends its members away, and goes on with what is pending.
    """
    settling.ask_to_stop()
    waits: list[Awaitable[object]] = [proxies.close()]
    if settling.is_at_work:
        waits.append(asyncio.to_thread(settling.close))
    with suppress(TimeoutError):
        async with asyncio.timeout_at(
            min(end_at, asyncio.get_running_loop().time() + _END_SECONDS)
        ):
            await asyncio.gather(*waits)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_SECONDS):
            await answering.close()


async def _seat(
    settings: WorkerSettings, log_id: str, proxies: Proxies, answering: Answering, journal: Journal
) -> None:
    """Native consumers in Kafka's groups: those that a killed worker has left there go first."""
    answering.tell("members_began")
    with suppress(asyncio.CancelledError):
        try:
            gone = await send_away(settings.kafka, f"{CLIENT_PREFIX}{log_id[:8]}-")
        except DuologError as error:  # Kafka lets them go when their sessions end
            journal.warn("members.left_behind", **shown(error))
        else:
            if gone:
                journal.note("members.sent_away", members=gone)
        await proxies.run()


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    """One worker at a time mirrors the log in a folder."""
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(folder / "mirror.lock", 0))
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LogBusy(
                        f"Another process mirrors the log in {folder} and has not ended within "
                        f"{_LOCK_PATIENCE_SECONDS:g} s. Stop it, or leave the mirror to it."
                    ) from None
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            else:
                break
        yield


async def _tell(mirror: KafkaMirror, settling: GroupSettling, tell: Tell) -> None:
    last: Mapping[str, Any] | None = None
    history, told_at = History(), 0.0
    with suppress(asyncio.CancelledError):
        while True:
            partitions, now = mirror.status(), time.monotonic()
            told = {
                **summary(
                    mirror.cluster_id, partitions, history.note(partitions, now), mirror.trouble
                ),
                "groups": summary_of_groups(settling.status()),
            }
            if told != last or now - told_at >= _TELL_AGAIN_SECONDS:
                tell(told)
                last, told_at = told, now
            await asyncio.sleep(_TELL_EVERY_SECONDS)


def _leave(code: int) -> NoReturn:
    """End now. Threads may still wait for Kafka, and hold nothing that is to be written down."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _leave(main())
