"""Tells the host what is done."""

from __future__ import annotations

import asyncio
import time

from duolog.client.deliveries import Deliveries
from duolog.client.host_calls import HostCalls
from duolog.client.options import ConsumerOptions


class Acks:
    """Of one consumer."""

    def __init__(self, core: Deliveries, host: HostCalls, options: ConsumerOptions) -> None:
        self._core = core
        self._host = host
        self._group = options.group
        self._interval_seconds = options.ack_interval_seconds
        self._sent_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last time is longer ago than the interval."""
        return time.monotonic() - self._sent_at > self._interval_seconds

    async def send(self, deadline_seconds: float | None = None) -> None:
        """All that the host does not know yet, of all partitions at once."""
        if self._group is None:
            return
        acks = self._core.acks()
        told = await asyncio.gather(
            *(self._host.ack(self._group, ack, deadline_seconds) for ack in acks),
            return_exceptions=True,
        )
        self._sent_at = time.monotonic()
        failures = []
        for ack, answer in zip(acks, told, strict=True):
            if isinstance(answer, BaseException):
                failures.append(answer)
            else:
                self._core.acknowledged(ack, answer)
        if failures:
            raise failures[0]
