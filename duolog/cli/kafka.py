"""`duolog kafka`"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli.kafka_security import security_of, write_settings
from duolog.cli.options import AsJson

if TYPE_CHECKING:
    from duolog.bridge.kafka.local import LocalKafka
    from duolog.jars import Progress

DEFAULT_PORT = 9092  # where clients look for a broker


def kafka(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            "--dir",
            metavar="DIR",
            help="Keep its data here; otherwise they are gone when it ends.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")
    ] = DEFAULT_PORT,
    security: Annotated[
        str | None,
        typer.Option(
            metavar="PROTOCOL",
            help="SSL, SASL_PLAINTEXT or SASL_SSL: a second listener with TLS, a login, or both.",
            show_default=False,
        ),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Only fetch what it needs, for later without network.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a real Apache Kafka on this machine, for trying out and for tests.

    One node on loopback, without passwords; Ctrl-C ends it. Needs Java 17.
    With --security it has a second listener, whose address is printed, and
    says in which file the settings for it are.
    What it is made of is fetched once (43 MB) with the Ivy inside PySpark and
    kept in ~/.cache/duolog, or in what DUOLOG_CACHE names. A mirror of Maven
    Central is named by DUOLOG_MAVEN_URL or, with an Ivy settings file, by
    DUOLOG_IVY_SETTINGS, and a proxy by HTTPS_PROXY.
    """
    from duolog.bridge.kafka.local import KAFKA_VERSION, LocalKafka, kafka_jars

    with _ended_by_signals(), _progress(silent=as_json) as progress:
        jars = kafka_jars(progress)
        if fetch:
            folder = jars[0].parent
            if as_json:
                output.json_line({"jars": str(folder), "version": KAFKA_VERSION})
            else:
                output.note(f"Kafka {KAFKA_VERSION} is in {folder}.")
            return
        protocol = None if security is None else security.upper()
        secured = None if protocol is None else security_of(protocol)
        with LocalKafka(data, port=port, security=secured) as broker:
            try:
                _say_ready(broker, protocol, as_json=as_json, kept=data is not None)
                broker.wait()
            except KeyboardInterrupt:
                return


def _say_ready(broker: LocalKafka, protocol: str | None, *, as_json: bool, kept: bool) -> None:
    servers = broker.bootstrap_servers if protocol is None else broker.address_of(protocol)
    settings = None if protocol is None else str(write_settings(broker, protocol))
    if as_json:
        told = {"bootstrap_servers": servers, "pid": broker.pid, "data": str(broker.folder)}
        if settings is not None:
            told["settings"] = settings
        output.json_line({**told, "log": str(broker.log_file)})
    else:
        output.line(servers)
        until = "" if kept else ", until it ends"
        output.note(f"Kafka takes work. Its data are in {broker.folder}{until}. Ctrl-C ends it.")
        if settings is not None:
            output.note(f"How to come in by {protocol} is in {settings}, as the table [kafka].")
    output.flush()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM is like Ctrl-C: what was started is stopped, what was made is removed."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(*, silent: bool) -> Iterator[Progress | None]:
    """A line that is written anew at a terminal; elsewhere the first one is enough."""
    shown = 0
    on_terminal = sys.stderr.isatty()

    def show(text: str) -> None:
        nonlocal shown
        if on_terminal:
            output.line_anew(text)
        elif not shown:
            output.note("Fetching Kafka (43 MB), once.")
        shown += 1

    yield None if silent else show
    if shown and on_terminal:
        output.note("")
