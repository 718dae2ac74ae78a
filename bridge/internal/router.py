"""The routes under /v1/internal. Each is small: admit, decode, let the log do it, encode.

The log's own calls block, so they run in a bounded number of threads; a call that takes longer
shows signs of life, so that a client can tell a busy host from a dead one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse

from duolog.bridge.internal.admission import Admission
from duolog.bridge.internal.bodies import (
    OUR_HEADERS,
    JsonBodies,
    json_answer,
    json_text,
    parsed_object,
    refusal,
)
from duolog.bridge.internal.dispatch import Dispatch
from duolog.bridge.internal.parts import StagedUploads
from duolog.bridge.internal.wait import wait_for_append, wait_for_positions
from duolog.bridge.waiting import WaitingRoom
from duolog.errors import DuologError, HostFailed, HostRefused, InvalidRequest
from duolog.log.owner import host_hint
from duolog.reach.calls import CALLS, SETTLE_GROUP
from duolog.reach.failures import failure_of
from duolog.reach.protocol import PREFIX, VERSION
from duolog.server.request_memory import BYTES_A_VALUE, RequestMemory

if TYPE_CHECKING:
    from duolog.bridge.groups import HostGroups
    from duolog.bridge.local_callers import LocalCallers
    from duolog.log.embedded import EmbeddedLog

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]

MAX_BODY_BYTES: Final = 32 << 20
MAX_PART_BYTES: Final = 4 << 30
_BYTES_A_VALUE: Final = {"publish": 600}  # of any number of records, each with its answer
_BYTES_A_POSITION: Final = 80  # for each of its four values
_THREADS: Final = 16
_PARSE_THREADS: Final = 2  # of large requests; they share Python's lock with the event loop
_LONG_THREADS: Final = 8  # appends and the like: apart, so that they never keep reads waiting
_WAITING_THREADS: Final = 16  # those who wait for Kafka keep nobody else waiting
_LONGEST_WAIT_SECONDS: Final = 60.0
_MOST_POSITIONS: Final = 1 << 17  # of one wait: twice as many as a topic has partitions at most
_BEAT_SECONDS: Final = 1.0
_A_MOMENT_SECONDS: Final = 0.1

_LOG: Final = logging.getLogger("duolog.bridge")


def internal_router(
    log: EmbeddedLog,
    *,
    local: LocalCallers | None = None,
    admits: Callable[[str, str], str | None] | None = None,
    room: WaitingRoom | None = None,
    groups: HostGroups | None = None,
    memory: RequestMemory | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    max_part_bytes: int = MAX_PART_BYTES,
) -> APIRouter:
    """`local` knows who can read the secret of the log's folder; they may do everything. In `room`
    waits who asks for what is not there yet; `groups` moves groups on both sides.

    `admits` judges all other bearer tokens ("": none) for a call: one of `reach.calls.CALLS`, or
    hello, fetch, wait, parts. It gives the name of the token, None where it is not let in, and may
    raise HostRefused, to say why one that it knows is not enough.
    """
    routes = _Routes(
        log,
        Admission(log.log_id, local, admits),
        room or WaitingRoom(log),
        memory or RequestMemory(),
        JsonBodies(_PARSE_THREADS, max_body_bytes),
    )
    routes.uploads = StagedUploads(log, routes.in_thread, max_part_bytes)
    routes.dispatch = Dispatch(log, routes.uploads, groups)
    router = APIRouter()
    for path, method, handler in routes.table():
        router.add_route(
            f"{PREFIX}{path}", routes.guarded(handler), methods=[method], include_in_schema=False
        )
    return router


class _Routes:
    uploads: StagedUploads
    dispatch: Dispatch

    def __init__(
        self,
        log: EmbeddedLog,
        admission: Admission,
        room: WaitingRoom,
        memory: RequestMemory,
        bodies: JsonBodies,
    ) -> None:
        self._log = log
        self._admission = admission
        self._room = room
        self._memory = memory
        self._bodies = bodies
        self._limit = CapacityLimiter(_THREADS)
        self._long_limit = CapacityLimiter(_LONG_THREADS)
        self._waiting_limit = CapacityLimiter(_WAITING_THREADS)
        self._under_way: set[asyncio.Task[Any]] = set()

    def table(self) -> tuple[tuple[str, str, Handler], ...]:
        return (
            ("/hello", "GET", self._hello),
            ("/call/{method}", "POST", self._call),
            ("/fetch", "GET", self._fetch),
            ("/wait", "POST", self._wait),
            ("/parts/{name:path}", "PUT", self._receive),
            ("/parts/{name:path}", "GET", self._give),
            ("/parts/{name:path}", "DELETE", self._remove),
        )

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._limit)

    def guarded(self, handler: Handler) -> Handler:
        """A handler behind admission, with errors as answers."""

        async def handle(request: Request) -> Response:
            try:
                self._admission.check_client(request)
                if handler != self._hello:
                    self._admission.check_bearer(request, _call_of(request))
                return await handler(request)
            except DuologError as error:
                return refusal(error)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except Exception:  # noqa: BLE001 - whatever it is, the client is told in our words
                _LOG.exception("failed path=%s", request.url.path)
                return refusal(_failed())

        return handle

    async def _hello(self, request: Request) -> Response:
        """Which log this is. Before the client says who it is, the host shows that it is one."""
        nonce = request.query_params.get("nonce")
        said: dict[str, Any] = {"log_id": self._log.log_id, "protocol": VERSION}
        if nonce is None:
            self._admission.check_bearer(request, "hello")
            return json_answer({"result": said})
        hint = await self.in_thread(partial(host_hint, self._log.folder))
        local = self._admission.local
        if local is None or hint is None:
            raise HostRefused("The host has no secret on this machine. Give its url and a token.")
        said |= {"nonce": local.nonce, "proof": local.proof(nonce, hint.address)}
        return json_answer({"result": said})

    async def _call(self, request: Request) -> Response:
        name = request.path_params["method"]
        call = CALLS.get(name)
        if call is None:
            raise InvalidRequest(
                f"The host has no call '{name}'. Use the same Duolog on both sides."
            )
        with ExitStack() as ending:
            memory = ending.enter_context(self._memory.request())
            bytes_a_value = _BYTES_A_VALUE.get(name, BYTES_A_VALUE)
            began = time.monotonic()
            asked = await self._bodies.of(request, memory, bytes_a_value)
            if time.monotonic() - began > _A_MOMENT_SECONDS:  # the token may have ended meanwhile
                self._admission.check_bearer(request, name)
            work = partial(self.dispatch.run, call, asked)
            if not call.is_long:
                return json_answer({"result": await self.in_thread(work)})
            limit = self._waiting_limit if call is SETTLE_GROUP else self._long_limit
            task: asyncio.Task[Any] = asyncio.ensure_future(
                anyio.to_thread.run_sync(work, limiter=limit)
            )
            self._under_way.add(task)  # a task that nobody holds may be collected
            task.add_done_callback(self._under_way.discard)
            later = ending.pop_all()
            task.add_done_callback(lambda _: later.close())
        await asyncio.wait({task}, timeout=_BEAT_SECONDS)
        if task.done():
            return json_answer({"result": task.result()})
        return StreamingResponse(_beating(task), 200, OUR_HEADERS, "application/json")

    async def _fetch(self, request: Request) -> Response:
        arguments = parsed_object(request.query_params.get("arguments", ""))
        content = await self.in_thread(partial(self.dispatch.fetch, arguments))
        return Response(content, 200, OUR_HEADERS, "application/octet-stream")

    async def _wait(self, request: Request) -> Response:
        with self._memory.request() as memory:
            wanted = await self._bodies.of(request, memory, _BYTES_A_POSITION)
        try:
            seconds = min(float(wanted["seconds"]), _LONGEST_WAIT_SECONDS)
            stored = int(wanted["positions_stored"]) if "positions_stored" in wanted else None
            positions = (
                {(reference, number): int(at) for reference, number, at in wanted["positions"]}
                if stored is None
                else {}
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidRequest(
                "A wait names positions, or positions_stored, and seconds."
            ) from None
        if len(positions) > _MOST_POSITIONS:
            raise InvalidRequest(f"A wait names at most {_MOST_POSITIONS} positions.")
        gone = asyncio.ensure_future(_gone(request))
        found: bool | int
        try:
            if stored is None:
                found = await wait_for_append(self._log, self._room, positions, seconds, gone)
            else:
                found = await wait_for_positions(self._log, self._room, stored, seconds, gone)
        finally:
            gone.cancel()
        self._admission.check_bearer(request, "wait")  # it may have been taken back since
        return json_answer({"result": found})

    async def _receive(self, request: Request) -> Response:
        await self.uploads.receive(request, request.path_params["name"])
        return json_answer({"result": None})

    async def _give(self, request: Request) -> Response:
        path = await self.in_thread(partial(self.uploads.file, request.path_params["name"]))
        return FileResponse(path, 200, OUR_HEADERS, "application/octet-stream")

    async def _remove(self, request: Request) -> Response:
        await self.in_thread(partial(self.uploads.remove, request.path_params["name"]))
        return json_answer({"result": None})


def _call_of(request: Request) -> str:
    """What is asked for, as `admits` has it."""
    named: str | None = request.path_params.get("method")
    return named or request.url.path.partition(f"{PREFIX}/")[2].partition("/")[0]


async def _beating(task: asyncio.Task[Any]) -> AsyncIterator[bytes]:
    """Spaces while it takes, which JSON passes over; then the answer, also when it is an error."""
    while not task.done():
        yield b" "
        await asyncio.wait({task}, timeout=_BEAT_SECONDS)
    try:
        yield json_text({"result": task.result()})
    except DuologError as error:
        yield json_text(failure_of(error))
    except Exception:  # noqa: BLE001 - the same here
        _LOG.exception("a long call failed")
        yield json_text(failure_of(_failed()))


async def _gone(request: Request) -> None:
    """Returns when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _failed() -> HostFailed:
    return HostFailed("The host failed in a way that it has no name for; its log says more.")
