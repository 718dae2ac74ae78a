"""How commands are told of a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from duolog.bridge.kafka.settings import KafkaSettings
    from duolog.settings import Settings

_SERVERS = "bootstrap.servers"

BootstrapServers = Annotated[
    str | None,
    typer.Option(
        metavar="H:P",
        help='A broker of Kafka, or several with commas (or "bootstrap.servers" in \\[kafka]).',
        show_default=False,
    ),
]
KafkaOptions = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="K=V",
        help="A setting of its clients by Kafka's name; may be repeated.",
        show_default=False,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Groups with one position on both sides; several with commas.",
        show_default="all",
    ),
]
GroupsExclude = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Groups that are left alone.",
        show_default="console-consumer-.*,connect-.*,__.*",
    ),
]


def kafka_flags(bootstrap_servers: str | None, pairs: list[str] | None) -> dict[str, str]:
    """What was given on the command line, for `[kafka]`."""
    from duolog.bridge.kafka.setting_names import SECRETS, canonical

    given: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise typer.BadParameter("Write settings as name=value.", param_hint="-X")
        if canonical(name) in SECRETS:
            raise typer.BadParameter(
                f"Everybody on this machine can read {name} here. Give it in [kafka] of a settings "
                "file, or in DUOLOG_KAFKA.",
                param_hint="-X",
            )
        given[name] = value
    if bootstrap_servers is not None:
        given[_SERVERS] = bootstrap_servers
    return given


def kafka_settings(settings: Settings) -> KafkaSettings | None:
    """The cluster that flags and `[kafka]` name, checked; None when they name none."""
    from duolog.bridge.kafka.settings import KafkaSettings

    given = settings.kafka_options()
    servers = given.pop(_SERVERS, None)
    if servers is None:
        if given:
            raise typer.BadParameter(
                "There are settings for Kafka, and no broker: give --bootstrap-servers H:P.",
                param_hint="--bootstrap-servers",
            )
        return None
    return KafkaSettings.of(servers, given)
