"""Sends dead letters, each once."""

from __future__ import annotations

from duolog.client.dead_letters import cut_letter, dead_letter, letter_of_now, letter_writer
from duolog.client.host_calls import HostCalls
from duolog.client.messages import NewRecord, message_of
from duolog.client.options import ConsumerOptions
from duolog.client.records import ConsumedRecord
from duolog.errors import (
    InvalidTimestamp,
    RecordTooLarge,
    SequenceContentMismatch,
    SequenceTooOld,
)


class Letters:
    """Of one consumer."""

    def __init__(self, host: HostCalls, options: ConsumerOptions) -> None:
        self._host = host
        self._topic = options.dead_letter_topic
        self._group = options.group
        self._is_checked = self._topic is None

    async def check_topic(self) -> None:
        """Before the first record: that the topic is missing should not be found out by need."""
        if not self._is_checked:
            await self._host.check_topic(self._topic or "")
            self._is_checked = True

    async def send(self, record: ConsumedRecord, reason: object) -> None:
        """Publish a record that is given up; durable when it returns."""
        letter = dead_letter(record, self._group, reason)
        try:
            await self._send_within_size(record, letter)
        except InvalidTimestamp:
            await self._send_within_size(record, letter_of_now(letter))

    async def _send_within_size(self, record: ConsumedRecord, letter: NewRecord) -> None:
        try:
            await self._send(record, letter)
        except RecordTooLarge:
            await self._send(record, cut_letter(letter))

    async def _send(self, record: ConsumedRecord, letter: NewRecord) -> None:
        topic, messages = self._topic or "", [message_of(letter)]
        if self._group is None:
            await self._host.publish(topic, messages, None, 0)
            return
        writer = letter_writer(record, self._group)
        try:
            await self._host.publish(topic, messages, writer, record.offset)
        except (SequenceTooOld, SequenceContentMismatch):
            # Much later records were given up before, or the topic was made anew: nobody can say
            # whether this one was. Rather twice than not at all.
            await self._host.publish(topic, messages, None, 0)
