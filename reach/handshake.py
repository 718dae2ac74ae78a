"""Who answers? A host of this machine proves that it can read the log's secret, and is shown that
the client can; one behind a url is told the token and says which log it has.
"""

from __future__ import annotations

import hmac
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from duolog.errors import HostMismatch, HostRefused, HostUnreachable, InvalidSetting
from duolog.log.owner import HostHint, host_hint, read_secret
from duolog.reach.address import Address, parse_address
from duolog.reach.connection import Endpoint, HostConnection, result_of
from duolog.reach.exchange import Answer, AnswerLost, Exchange, NotSent, Request
from duolog.reach.options import RemoteOptions
from duolog.reach.protocol import (
    PREFIX,
    PROTOCOL_HEADER,
    VERSION,
    is_nonce,
    local_token,
    new_nonce,
    proof_of,
)


class NotTheHost(NotSent):
    """Somebody else answers. What was to be asked was not sent."""


@dataclass(frozen=True, slots=True)
class LocalIntroduction:
    """How a client and a host of this machine come to know each other, on each connection anew: in
    between the host may have ended, and something else have taken its port.
    """

    secret: str = field(repr=False)
    hint: HostHint

    def on(self, ask: Callable[[Request, dict[str, str]], Answer]) -> dict[str, str]:
        """Headers for all that is asked on the connection. Raises NotTheHost for anybody else."""
        nonce = new_nonce()
        request = Request("GET", f"{PREFIX}/hello?nonce={nonce}", "say which log it has")
        told = _result_in(ask(request, {PROTOCOL_HEADER: str(VERSION)}))
        host_nonce = told.get("nonce")
        if not is_nonce(host_nonce) or not self._is_proof(told, nonce, host_nonce):
            raise NotTheHost("what answers there could not prove that it knows the log's secret")
        token = local_token(self.secret, nonce, host_nonce, self.hint.log_id)
        return {"Authorization": f"Bearer {token}"}

    def _is_proof(self, told: dict[str, object], nonce: str, host_nonce: str) -> bool:
        log_id, address = self.hint.log_id, self.hint.address
        expected = proof_of(self.secret, nonce, host_nonce, log_id, address)
        proof = str(told.get("proof")).encode()
        return told.get("log_id") == log_id and hmac.compare_digest(proof, expected.encode())


def _result_in(answer: Answer) -> dict[str, object]:
    try:
        said = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    told = said.get("result") if isinstance(said, dict) else None
    return told if isinstance(told, dict) else {}


def endpoint_of_folder(folder: Path, options: RemoteOptions, until: float = math.inf) -> Endpoint:
    """The host that host.json names, if it proves to be one. Asked once.

    HostUnreachable when there is no hint, or nobody answers there; HostMismatch when somebody else
    does.
    """
    hint = host_hint(folder)
    if hint is None:
        raise HostUnreachable(
            f"Nobody says where the host of the log in {folder} can be asked: it has ended, or is "
            "just beginning."
        )
    secret = read_secret(folder)
    if secret is None:
        raise HostRefused(
            f"There is no usable secret in {folder}: the host has made none, or others can read "
            "it. Start the host again."
        )
    try:
        address = parse_address(hint.address)
    except InvalidSetting as error:
        raise HostUnreachable(
            f"host.json in {folder} names no address: {error} Start the host again."
        ) from error
    introduction = LocalIntroduction(secret, hint)
    _look_who_answers(address, introduction, options, until)
    return Endpoint(address, None, hint.log_id, introduction)


def _look_who_answers(
    address: Address, introduction: LocalIntroduction, options: RemoteOptions, until: float
) -> None:
    exchange = Exchange(address, options, vouched_for=True)

    def ask(request: Request, headers: dict[str, str]) -> Answer:
        before = min(until, time.monotonic() + options.connect_timeout_seconds)
        answer = exchange.ask(request, headers, before)
        result_of(Endpoint(address, None), answer)  # of another version, or no Duolog at all
        return answer

    try:
        try:
            introduction.on(ask)
        finally:
            exchange.close()
    except NotTheHost:
        raise HostMismatch(
            f"What answers at {address} is not the host of the log that host.json names "
            f"({introduction.hint.log_id}): it could not prove that it knows the log's secret. It "
            "was told nothing. Has the host ended, and something else taken its port?"
        ) from None
    except (NotSent, AnswerLost) as failure:
        raise HostUnreachable(
            f"The host at {address}, which host.json names, does not answer: {failure}. If it has "
            "ended, stop whoever holds the log; if it hangs, start it again."
        ) from failure


def settle_remote(connection: HostConnection) -> Endpoint:
    """Learn which log is behind a url, and hold to it from now on."""
    request = Request("GET", f"{PREFIX}/hello", "say which log it has")
    said = connection.json(request, may_repeat=True)
    known = connection.endpoint
    log_id = said.get("log_id") if isinstance(said, dict) else None
    if not isinstance(log_id, str):
        raise HostMismatch(
            f"What answers at {known.address} is no host of a Duolog log. Check the url."
        )
    endpoint = Endpoint(known.address, known.credential, log_id)
    connection.settle(endpoint)
    return endpoint
