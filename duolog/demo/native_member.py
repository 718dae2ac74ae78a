"""A native consumer: reads the log at its host, with Duolog's own client.

python -m duolog.demo.native_member URL TOPIC GROUP LEDGER
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from duolog.client import Consumer
from duolog.demo.ledger import Ledger
from duolog.errors import PartitionRevoked

_WAIT_SECONDS: Final = 0.2


def main(url: str, topic: str, group: str, ledger_path: Path) -> None:
    """Read, do, acknowledge, until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with (
        Ledger(ledger_path) as ledger,
        Consumer(topic, url=url, group=group, start="earliest", auto_ack=False) as consumer,
    ):
        while not stopping.is_set():
            records = consumer.poll(timeout_seconds=_WAIT_SECONDS)
            if records:
                ledger.note((record.partition, record.offset) for record in records)
                with suppress(PartitionRevoked):  # another member has it now, and these again
                    consumer.ack()


if __name__ == "__main__":
    _, url, topic, group, ledger = sys.argv
    main(url, topic, group, Path(ledger))
