"""The Kafka worker: a process of its own beside the host, so that neither delays the other.

Run as `python -m duolog.bridge.kafka.worker` by `duolog serve`, which gives it a line of JSON:

    {"folder": …, "bootstrap_servers": …, "settings": {…}, "when_refused": "dlq" | "halt",
     "groups": …, "groups.exclude": …, "offset_header": …}

The last five may be left out.

It reaches the log through the host, and tells it a line of JSON now and then: how it is. The host
asks it questions in between (`serve/exchange.py`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from duolog.bridge.journal import Journal
from duolog.bridge.kafka.feed.filters import EVERY_GROUP, EXCLUDED_BY_DEFAULT, GroupFilter
from duolog.bridge.kafka.members.left_behind import send_away
from duolog.bridge.kafka.members.proxies import CLIENT_PREFIX, Proxies
from duolog.bridge.kafka.mirror.mirroring import KafkaMirror
from duolog.bridge.kafka.mirror.shared import MirrorOptions, WhenRefused
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.bridge.kafka.positions.questions import GroupQuestions
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.status import History, summary, summary_of_groups
from duolog.bridge.serve.answering import Answering
from duolog.bridge.serve.leash import NOT_RUNNABLE, settings_from_host, tell_host
from duolog.errors import DuologError, InvalidSetting, LogBusy
from duolog.flock import locked
from duolog.reach import reach

FAILED: Final = 1
_TELL_EVERY_SECONDS: Final = 1.0
_TELL_AGAIN_SECONDS: Final = 5.0  # also when nothing has changed: silence means that it stands
_LOCK_PATIENCE_SECONDS: Final = 10.0  # an old worker may be on its way out

Tell = Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What the host hands over."""

    folder: Path
    kafka: KafkaSettings
    options: MirrorOptions
    groups: GroupFilter

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Checked settings."""
        known = {
            *("folder", "bootstrap_servers", "settings", "when_refused"),
            *("groups", "groups.exclude", "offset_header"),
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
        )


def main() -> int:
    """The process, from its start to its end; its exit code."""
    # Arrow's own allocator keeps 100 MB for its threads, and is no faster on batches of this size.
    pa.set_memory_pool(pa.system_memory_pool())
    journal = Journal()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it says is in our errors
    answering = Answering(journal)
    try:
        settings = WorkerSettings.of(settings_from_host(hear=answering.hear))
    except InvalidSetting as error:
        tell_host({"state": "failed", "code": error.code, "error": str(error)})
        return NOT_RUNNABLE
    return asyncio.run(work(settings, journal, tell_host, answering))


async def work(
    settings: WorkerSettings, journal: Journal, tell: Tell, answering: Answering | None = None
) -> int:
    """Mirror until SIGTERM or SIGINT; the exit code."""
    answering = answering or Answering(journal)
    working = asyncio.current_task()
    assert working is not None  # noqa: S101 - this is one
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        with _alone(settings.folder), reach(settings.folder) as log:
            mirror = KafkaMirror(log, settings.kafka, options=settings.options, say=journal.note)
            own = OwnCommits()
            settling = GroupSettling(
                log, settings.kafka, groups=settings.groups, mirrors=mirror.mirrors, own=own
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
                await proxies.close()
                await answering.close()
                await asyncio.to_thread(settling.close)
    except asyncio.CancelledError:
        tell({"state": "stopped"})
        return 0
    except DuologError as error:
        journal.error("mirror.failed", error)
        tell({"state": "failed", "code": error.code, "error": str(error)})
        return NOT_RUNNABLE if isinstance(error, InvalidSetting) else FAILED
    return FAILED


async def _seat(
    settings: WorkerSettings, log_id: str, proxies: Proxies, answering: Answering, journal: Journal
) -> None:
    """Native consumers in Kafka's groups: those that a killed worker has left there go first."""
    answering.tell("members_began")
    with suppress(asyncio.CancelledError):
        try:
            gone = await send_away(settings.kafka, f"{CLIENT_PREFIX}{log_id[:8]}-")
        except DuologError as error:  # Kafka lets them go when their sessions end
            journal.error("members.left_behind", error)
        else:
            if gone:
                journal.note("members.sent_away", members=gone)
        await proxies.run()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One worker at a time mirrors the log in a folder."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder / "mirror.lock", _LOCK_PATIENCE_SECONDS))
        except BlockingIOError:
            raise LogBusy(
                f"Another process mirrors the log in {folder} and has not ended within "
                f"{_LOCK_PATIENCE_SECONDS:g} s. Stop it, or leave the mirror to it."
            ) from None
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


if __name__ == "__main__":
    sys.exit(main())
