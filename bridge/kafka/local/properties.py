"""The settings of a broker that is its own controller. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
CLIENTS = "PLAINTEXT"
_CONTROLLER = "CONTROLLER"
_NODE = "1"


@dataclass(frozen=True, slots=True)
class Listener:
    """One address of the broker. The protocol is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    name: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        return f"{self.name}://{LOOPBACK}:{self.port}"


def broker_properties(
    data: Path,
    listeners: Sequence[Listener],
    controller_port: int,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """What the broker is told. The first listener is its own way to itself; `extra` wins."""
    controller = Listener(_CONTROLLER, controller_port)
    everywhere = [*listeners, controller]
    return {
        "process.roles": "broker,controller",
        "node.id": _NODE,
        "controller.quorum.voters": f"{_NODE}@{LOOPBACK}:{controller_port}",
        "controller.listener.names": _CONTROLLER,
        "inter.broker.listener.name": listeners[0].name,
        "listeners": ",".join(listener.address for listener in everywhere),
        "advertised.listeners": ",".join(listener.address for listener in listeners),
        "listener.security.protocol.map": ",".join(
            f"{listener.name}:{listener.protocol}" for listener in everywhere
        ),
        "log.dirs": str(data),
        # One node holds every copy that there is.
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # The usual fifty cost a second at the first group and after a kill; one would be special.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # By the newer protocol a partition changes hands in two heartbeats, of five seconds each.
        "group.consumer.min.heartbeat.interval.ms": "300",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": "10000",
        # After kill -9 the node waits until its own old session ends: nine seconds by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        **(extra or {}),
    }


def logging_properties() -> dict[str, str]:
    """Log4j: everything to stderr, which goes into the log file."""
    return {
        "status": "error",
        "appender.stderr.type": "Console",
        "appender.stderr.name": "stderr",
        "appender.stderr.target": "SYSTEM_ERR",
        "appender.stderr.layout.type": "PatternLayout",
        "appender.stderr.layout.pattern": "[%d] %p %m (%c{1})%n",
        "rootLogger.level": "info",
        "rootLogger.appenderRef.stderr.ref": "stderr",
    }


def as_text(properties: Mapping[str, str]) -> str:
    """As a Java properties file, which is read as Latin-1 with escapes."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str) -> str:
    told = "".join(
        f"\\u{ord(unit):04x}" if ord(unit) > 126 or ord(unit) < 32 else unit
        for unit in _utf16_units(text.replace("\\", "\\\\"))
    )
    for special in "=:#!":
        told = told.replace(special, f"\\{special}")
    return f"\\{told}" if told.startswith(" ") else told


def _utf16_units(text: str) -> list[str]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(encoded[at : at + 2])) for at in range(0, len(encoded), 2)]
