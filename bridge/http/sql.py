"""POST sql: statements, one after the other, as `duolog sql` does them.

A SELECT runs in another process, which ends when its client leaves or the host stops.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response

from duolog.avro.registry.port import Registry, SchemaSource
from duolog.bridge.http.access import lacks, need_of_statement
from duolog.bridge.http.answers import JSON_TYPE, Refusal, refusal_of
from duolog.bridge.http.answers_held import SMALL_ANSWER_BYTES
from duolog.bridge.http.asking import (
    RequestRefused,
    answer_of,
    caller_of,
    check_still_let_in,
    not_theirs,
    shown_caller,
    token_name,
)
from duolog.bridge.http.callers import Caller
from duolog.bridge.http.host import Host
from duolog.bridge.http.models import SqlRequest
from duolog.bridge.http.sending import arrow_response, client_left, json_text_response, wants_arrow
from duolog.bridge.metrics.names import CONSUMED, REFUSED
from duolog.bridge.sql.answering import Answering
from duolog.bridge.sql.children import Children
from duolog.bridge.sql.frames import Query
from duolog.bridge.sql.readable_schemas import ReadableSchemas, registry_used_by
from duolog.bridge.sql.seen_log import UsedLog
from duolog.bridge.sql.shown import AnswerLimits, as_arrow, as_json
from duolog.bridge.waiting import NOWHERE
from duolog.errors import (
    AnswerTooLarge,
    DuologError,
    ForbiddenGroup,
    ForbiddenTopic,
    InvalidRequest,
    LogClosed,
)
from duolog.log.access import LogAccess
from duolog.log.model import Format, Topic
from duolog.sql.grammar import parse
from duolog.sql.groups import MAX_BYTES
from duolog.sql.statements import Ack, Consume, Select, Statement

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader

MOST_STATEMENTS: Final = 100
_CONSUME_BYTES: Final = 4 * MAX_BYTES  # to read records and to show them
_LONGER_THAN_ANY_SECONDS: Final = 1e6


class Sql:
    """The statements of one host's callers."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._children = Children(host.sql_rules, host.journal, host.tally)

    async def close(self) -> None:
        """End the processes that wait for queries."""
        await self._children.close()

    async def sql(self, request: Request, ask: SqlRequest) -> Response:
        """Run statements of SQL: of topics, groups, and queries."""
        statements = await self._host.readers.run(lambda: parse(ask.sql))
        is_arrow = wants_arrow(request)
        if len(statements) > MOST_STATEMENTS:
            raise InvalidRequest(f"A request may have {MOST_STATEMENTS} statements. Send several.")
        if is_arrow and len(statements) > 1:
            raise InvalidRequest("An Arrow stream holds one answer: send one statement.")
        asked = _Asked(request, ask.sql, self._log_for(request), is_arrow)
        checked, done = 0, list[bytes]()
        try:
            for statement in statements:
                self._check(asked, statement)
                checked += 1
            for statement in statements:
                check_still_let_in(self._host, request)
                done.append(await self._answer(asked, statement, sum(map(len, done))))
                answer_of(request).now_has(sum(map(len, done)))
            check_still_let_in(self._host, request)
        except (DuologError, RequestRefused) as error:
            refusal = self._refusal(error)
            if len(statements) == 1:
                raise RequestRefused(refusal) from None
            at = len(done) if checked == len(statements) else checked
            return _stopped(refusal, at + 1, done)
        if is_arrow:
            return arrow_response(done[0])
        body = done[0] if len(done) == 1 else b'{"results":[%b]}' % b",".join(done)
        return json_text_response(body)

    def _log_for(self, request: Request) -> UsedLog:
        return UsedLog(self._host.log, caller_of(request), self._host.visible, self._host.groups)

    def _check(self, asked: _Asked, statement: Statement) -> None:
        """Nothing is done before all statements are allowed."""
        users_consume = self._host.topic_rules.allow_user_role_consume
        why = lacks(asked.caller, need_of_statement(statement, users_consume=users_consume))
        if why is not None:
            self._host.tally.add(REFUSED, "role")
            raise RequestRefused(Refusal(403, "Forbidden", why))
        asked.log.check(statement)

    def _refusal(self, error: DuologError | RequestRefused) -> Refusal:
        if isinstance(error, ForbiddenTopic | ForbiddenGroup):
            error = not_theirs(self._host, error)
        return error.refusal if isinstance(error, RequestRefused) else refusal_of(error)

    async def _answer(self, asked: _Asked, statement: Statement, sent_bytes: int) -> bytes:
        if sent_bytes >= self._host.sql_rules.max_answer_bytes:
            raise AnswerTooLarge(
                "The statements before this one answer as much as is sent at once. Send the rest "
                "in another request."
            )
        match statement:
            case Select():
                answer_of(asked.request).check()
                answer = await self._select(asked, statement, sent_bytes)
                if len(answer) > SMALL_ANSWER_BYTES:
                    answer_of(asked.request).check()  # others were answered meanwhile
                return answer
            case Consume():
                return await self._consume(asked, statement)
            case Ack(settled=True):  # it may wait for long
                return (await asyncio.to_thread(self._done, asked, statement))[0]
        return await self._host.writers.run(lambda: self._done(asked, statement)[0])

    def _done(
        self, asked: _Asked, statement: Statement, reader: ValueReader | None = None
    ) -> tuple[bytes, int]:
        """Do it, here: what it answers, and in how many rows."""
        from duolog.sql.execution import execute  # some 30 MB, which an idle host does without

        log = cast("LogAccess", asked.log)
        result = execute(log, statement, asked.sql, reader=reader, clock=self._host.clock)
        limits = AnswerLimits()  # these statements have limits of their own
        return (as_arrow if asked.is_arrow else as_json)(result, limits), limits.rows

    async def _consume(self, asked: _Asked, statement: Consume) -> bytes:
        topic = asked.log.topic(statement.topic)
        groups, group, partition = self._host.groups, statement.group, statement.partition
        with self._place(asked, topic, statement):
            if group is not None:
                await groups.before_poll(group, topic, partition)
            with self._host.reading_memory.request(token_name(asked.request.scope)) as memory:
                await memory.wait_for(_CONSUME_BYTES)
                answer_of(asked.request).check()
                answer, rows = await self._host.readers.run(
                    lambda: self._done(asked, statement, self._reader_for(topic, asked.caller))
                )
        if group is not None:
            groups.after_poll(group, topic, partition)
        if rows:
            self._host.tally.add(CONSUMED, topic.name, by=rows)
        return answer

    def _place(
        self, asked: _Asked, topic: Topic, statement: Consume
    ) -> AbstractContextManager[None]:
        if statement.group is None:
            return nullcontext()
        partitions = range(topic.partitions)
        if statement.partition is not None:
            partitions = range(statement.partition, statement.partition + 1)
        holder = shown_caller(asked.request)
        self._host.members.check_free(statement.group, topic, partitions)
        return self._host.places.hold(statement.group, topic, partitions, holder)

    async def _select(self, asked: _Asked, statement: Select, sent_bytes: int) -> bytes:
        rules, readers = self._host.sql_rules, self._host.readers
        answering = Answering(asked.log, cache(partial(self._schemas_for, asked.caller)))
        query = Query(
            statement.text,
            statement.position,
            asked.sql,
            asked.is_arrow,
            rules.timeout_seconds,
            rules.pool_bytes,
            rules.max_rows,
            rules.max_answer_bytes - sent_bytes,
        )
        loop = asyncio.get_running_loop()
        with self._host.room.waiter((NOWHERE,)) as waiter:
            if self._host.room.is_stopping:
                raise _stopping()
            run = loop.create_task(
                self._children.run(query, lambda call: readers.run(lambda: answering.frame(call)))
            )
            run.add_done_callback(lambda _: waiter.wake())
            gone = loop.create_task(client_left(asked.request.receive))
            try:
                await waiter.wait(gone, _LONGER_THAN_ANY_SECONDS)
                if run.done():
                    return run.result()
                if self._host.room.is_stopping:
                    raise _stopping()
                raise RequestRefused(Refusal(499, "ClientLeft", "The client has left."))
            finally:
                for task in (run, gone):
                    task.cancel()
                with suppress(asyncio.CancelledError, DuologError):
                    await gone
                with suppress(asyncio.CancelledError, DuologError):
                    await run

    def _reader_for(self, topic: Topic, caller: Caller) -> ValueReader | None:
        formats = topic.settings.key_format, topic.settings.value_format
        if Format.AVRO not in formats:
            return None
        if not caller.is_limited_to_subjects:
            return self._host.value_reader()
        from duolog.avro.reading import ValueReader

        return ValueReader(self._schemas_for(caller))

    def _schemas_for(self, caller: Caller) -> SchemaSource:
        if caller.is_limited_to_subjects:
            return ReadableSchemas(self._registry, caller)
        return self._registry

    @cached_property
    def _registry(self) -> Registry:
        return registry_used_by(self._host.log)


class _Asked:
    """One request."""

    def __init__(self, request: Request, sql: str, log: UsedLog, is_arrow: bool) -> None:
        self.request = request
        self.caller = caller_of(request)
        self.sql = sql
        self.log = log
        self.is_arrow = is_arrow


def _stopping() -> LogClosed:
    return LogClosed("The host is stopping, and runs no queries. Ask again when it is back.")


def _stopped(refusal: Refusal, number: int, done: Sequence[bytes]) -> Response:
    """Which of several statements failed, and what those before it answered."""
    said: dict[str, Any] = {"error": refusal.error, "code": refusal.code, **refusal.more}
    head = json.dumps({**said, "statement": number}, separators=(",", ":"))[:-1].encode()
    body = b'%b,"results":[%b]}' % (head, b",".join(done))
    headers = {}
    if refusal.retry_after_seconds is not None:
        headers["retry-after"] = str(refusal.retry_after_seconds)
    return Response(body, refusal.status, headers, JSON_TYPE)
