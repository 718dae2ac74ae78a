"""`duolog serve`"""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duolog import output
from duolog.cli.kafka_options import (
    BootstrapServers,
    Groups,
    GroupsExclude,
    KafkaOptions,
    kafka_flags,
    kafka_settings,
)
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, LogFolder
from duolog.server.run import check_installed

if TYPE_CHECKING:
    from duolog.bridge.serve.child import WorkerCommand
    from duolog.bridge.serve.process import Started
    from duolog.settings import Settings


class Detail(StrEnum):
    """How much is logged; debug is each request."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def serve(
    log: LogFolder = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on; port 0 takes a free one.",
            show_default="127.0.0.1:7070",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(help="Who may ask: the file that `duolog token create` writes."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, instead of ./duolog.toml.")] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file of the host's certificate.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file of its key, if that is another file.")
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(help="PEM file: only clients with a certificate of these may come."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where others with the same directory reach it."),
    ] = None,
    trust_proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Proxies whose X-Forwarded-* headers are believed; several with commas.",
            show_default="none",
        ),
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka_options: KafkaOptions = None,
    groups: Groups = None,
    groups_exclude: GroupsExclude = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines on stderr.")] = False,
    log_level: Annotated[
        Detail,
        typer.Option(
            metavar="LEVEL", help="debug (each request), info, warning or error: what is logged."
        ),
    ] = Detail.INFO,
    as_json: AsJson = False,
) -> None:
    """Serve the log over HTTP, until Ctrl-C.

    It owns the log while it runs, and prints the address it took on stdout.
    Beyond loopback it wants tokens. With --bootstrap-servers it mirrors the
    log into Kafka.
    """
    check_installed(("fastapi", "uvicorn"), "The host", "bridge")
    from duolog.avro.embedded import open_log
    from duolog.bridge.journal import Journal, Level
    from duolog.bridge.serve.process import serve as serve_log

    flags: dict[str, Any] = {
        "listen": listen,
        "tokens": tokens,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "tls_client_ca": tls_client_ca,
        "advertise": advertise,
        "trust_proxy": trust_proxy,
    }
    tables = {
        "serve": flags,
        "kafka": kafka_flags(bootstrap_servers, kafka_options),
        "mirror": {"groups": groups, "groups_exclude": groups_exclude},
    }
    settings, path = settings_with_log(log, flags=tables, file=config)

    journal = Journal(as_json=log_json, level=Level[log_level.name])

    if settings.topics.poll_interval_ms is not None:
        said = (
            "[topics] poll_interval_ms has no effect: a poll that waits is answered by the append "
            "itself. Leave it out."
        )
        if log_json:  # then stderr is JSON, each line of it
            journal.warn("settings.without_effect", said=said)
        else:
            output.note(said)

    def say(started: Started) -> None:
        if as_json:
            output.json_line(asdict(started))
        else:
            output.line(started.url)
            if not log_json:
                output.note(f"Serves {started.log}. Ctrl-C ends it.")
        output.flush()

    serve_log(
        lambda: open_log(path, options=settings.log_options(), avro=settings.avro_options()),
        settings.host_options(),
        journal,
        when_started=say,
        workers=_workers(settings, path, log_json=log_json, log_level=log_level.value),
    )


def _workers(
    settings: Settings, path: str, *, log_json: bool, log_level: str
) -> list[WorkerCommand]:
    """The processes beside the host: one that mirrors, where a Kafka is named."""
    from duolog.bridge.kafka.feed.filters import GroupFilter
    from duolog.bridge.serve.child import WorkerCommand

    if kafka_settings(settings) is None:
        return []
    GroupFilter.of(
        settings.mirror.groups, settings.mirror.groups_exclude
    )  # refused here, if at all
    check_installed(("aiokafka", "confluent_kafka", "google_crc32c"), "The mirror", "kafka")
    given = settings.kafka_options()
    told = {
        "folder": str(Path(path).resolve()),
        "bootstrap_servers": given.pop("bootstrap.servers"),
        "settings": given,
        "when_refused": settings.mirror.when_refused,
        "offset_header": settings.mirror.offset_header,
        "groups": settings.mirror.groups,
        "groups.exclude": settings.mirror.groups_exclude,
        "log_json": log_json,
        "log_level": log_level,
    }
    return [WorkerCommand("kafka", "duolog.bridge.kafka.worker", told)]
