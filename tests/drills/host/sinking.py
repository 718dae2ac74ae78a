"""A sink and publishers that live on while their host dies, and keep a ledger of what it answered.

They write what all drills write. The stream appends epochs, of which some are staged or uploaded;
publishers send (writer, sequence) again after a lost answer, one of them over the plain HTTP API.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from duolog.errors import HostFault, LogBusy, OutcomeUnknown
from duolog.log.access import LogAccess
from duolog.log.model import Placed
from duolog.log.options import LogOptions
from duolog.reach import reach
from duolog.reach.options import RemoteOptions
from tests.drills.content import make_topics, publication
from tests.drills.ledger import Ledger
from tests.drills.worker import say
from tests.drills.writing import ENDLESS, Writing

HTTP_PUBLISHER = "dora"
_DEADLINE_SECONDS = 100.0
_GIVES_UP_SECONDS = 0.5
_INLINE_BYTES = 50_000  # larger parts are staged or uploaded
_PAUSE_SECONDS = 0.02


def sink(
    seed: str,
    folder: str | None = None,
    url: str | None = None,
    *,
    anew: bool = False,
) -> None:
    """The role: write until killed. With `anew`, reach the log for each call, as the connector
    does for each epoch, so that it goes on embedded where there is no host.

    Says "pong" to a line, behind all that was answered before.
    """
    threading.Thread(target=_answer_lines, daemon=True).start()
    log: Any
    if anew:
        assert folder is not None
        log = _ReachedAnew(Path(folder))
    else:
        log = reach(
            folder,
            url=url,
            remote=RemoteOptions(deadline_seconds=_DEADLINE_SECONDS, inline_bytes=_INLINE_BYTES),
        )
    writing = _Sinking(log, Ledger(), say, random.Random(seed))
    if url is not None:
        writing.insist(lambda: make_topics(log))
        publisher = _HttpPublisher(url, writing.note)
        threading.Thread(target=publisher.run, daemon=True).start()
    writing.run(ENDLESS, ENDLESS)


class _Sinking(Writing):
    def note(self, entry: Any) -> None:
        self._note(entry)


class _ReachedAnew:
    """A log that is reached for one call at a time, wherever it is by then.

    What failed is sent again: all that a drill writes is numbered.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_way = ""

    def wait_for_append(self, *_: Any) -> bool:
        """Without the log, which the host is to get."""
        threading.Event().wait(_PAUSE_SECONDS)
        return False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            while True:
                with suppress(HostFault, LogBusy, OutcomeUnknown), self._reached() as log:
                    return getattr(log, name)(*arguments, **named)

        return call

    def _reached(self) -> LogAccess:
        remote = RemoteOptions(deadline_seconds=_GIVES_UP_SECONDS, inline_bytes=_INLINE_BYTES)
        log = reach(self._folder, options=LogOptions(min_free_bytes=0), remote=remote)
        self._tell_way(log)
        return log

    def _tell_way(self, log: LogAccess) -> None:
        way = type(log).__name__
        if way != self._last_way:
            self._last_way = way
            say(["way", way])


class _HttpPublisher:
    """Publishes over the API for applications, and sends the same again until it is answered."""

    def __init__(self, url: str, note: Any) -> None:
        where = urlsplit(url)
        self._place = (where.hostname or "", where.port)
        self._note = note

    def run(self) -> None:
        try:
            for sequence in range(ENDLESS):
                placed = self._published(sequence)
                self._note(
                    [
                        "published",
                        HTTP_PUBLISHER,
                        sequence,
                        placed.topic,
                        placed.partition,
                        placed.offset,
                    ]
                )
        except BaseException as error:
            say(["violations", [f"{HTTP_PUBLISHER}: {type(error).__name__}: {error}"]])
            raise

    def _published(self, sequence: int) -> Placed:
        topic, record = publication(HTTP_PUBLISHER, sequence)
        message: dict[str, Any] = {"payload": base64.b64encode(record.value or b"").decode()}
        if record.key is not None:
            message["key_base64"] = base64.b64encode(record.key).decode()
        body = json.dumps(
            {"topic": topic, "messages": [message], "writer": HTTP_PUBLISHER, "sequence": sequence}
        )
        while True:
            with suppress(OSError, http.client.HTTPException):
                status, answer = self._asked(body)
                if status == 200:
                    (place,) = json.loads(answer)["offsets"]
                    return Placed(place["topic"], place["partition_id"], place["offset"])
                if status != 503:
                    raise RuntimeError(f"{status} {answer!r}")
            threading.Event().wait(_PAUSE_SECONDS)

    def _asked(self, body: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._place, timeout=_DEADLINE_SECONDS)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/api/topics/publish", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _answer_lines() -> None:
    for line in sys.stdin:
        say(["pong", json.loads(line)])
