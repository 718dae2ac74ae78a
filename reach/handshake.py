"""Who answers? A host of this machine proves that it can read the log's secret, and is shown that
the client can; one behind a url is told the token and says which log it has.
"""

from __future__ import annotations

import hmac
import math
import time
from pathlib import Path

from duolog.errors import HostMismatch, HostRefused, HostUnreachable, InvalidSetting
from duolog.log.owner import HostHint, host_hint, read_secret
from duolog.reach.address import Address, parse_address
from duolog.reach.connection import Endpoint, HostConnection, result_of
from duolog.reach.exchange import AnswerLost, Exchange, NotSent, Request
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
from duolog.reach.secret import Secret


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
    return _proved(address, hint, secret, options, until)


def _proved(
    address: Address, hint: HostHint, secret: str, options: RemoteOptions, until: float
) -> Endpoint:
    nonce = new_nonce()
    request = Request("GET", f"{PREFIX}/hello?nonce={nonce}", "say which log it has")
    exchange = Exchange(address, options, proves_itself=True)
    try:
        answer = exchange.ask(
            request,
            {PROTOCOL_HEADER: str(VERSION)},
            min(until, time.monotonic() + options.connect_timeout_seconds),
        )
        said = result_of(Endpoint(address, None), answer)
    except (NotSent, AnswerLost) as failure:
        raise HostUnreachable(
            f"The host at {address}, which host.json names, does not answer: {failure}. If it has "
            "ended, stop whoever holds the log; if it hangs, start it again."
        ) from failure
    finally:
        exchange.close()
    told = said if isinstance(said, dict) else {}
    host_nonce = told.get("nonce")
    if not is_nonce(host_nonce) or not _is_proof(
        told, proof_of(secret, nonce, host_nonce, hint.log_id, hint.address), hint.log_id
    ):
        raise HostMismatch(
            f"What answers at {address} is not the host of the log that host.json names "
            f"({hint.log_id}): it could not prove that it knows the log's secret. It was told "
            "nothing. Has the host ended, and something else taken its port?"
        )
    return Endpoint(
        address, Secret(local_token(secret, nonce, host_nonce, hint.log_id)), hint.log_id
    )


def _is_proof(told: dict[str, object], expected: str, log_id: str) -> bool:
    proof = str(told.get("proof")).encode()
    return told.get("log_id") == log_id and hmac.compare_digest(proof, expected.encode())


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
