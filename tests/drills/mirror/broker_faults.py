"""What happens to a broker while a mirror sends to it. Afterwards the mirror gets on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from duolog.bridge.kafka.local import LocalKafka
from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.requests import Place
from duolog.log.mirror_model import Mirror
from tests.drills.mirror.scene import Scene
from tests.support.kafka import DEADLINE_SECONDS
from tests.support.kafka_damage import cut_back, set_broker

_AWAY_SECONDS = 3.0
_A_DAY_MS = "86400000"

BrokerFault = Callable[[Scene, LocalKafka], None]


def frozen(scene: Scene, broker: LocalKafka) -> None:
    """It answers nothing for so long that requests are given up; then it does all they asked."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        scene.pass_time(_AWAY_SECONDS)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    scene.gets_on()


def stopped(scene: Scene, broker: LocalKafka, seconds: float = _AWAY_SECONDS) -> None:
    """It ends in order, and comes back."""
    broker.stop()
    scene.pass_time(seconds)
    broker.start()
    scene.gets_on()


def killed(scene: Scene, broker: LocalKafka) -> None:
    broker.kill()
    broker.start()
    scene.gets_on()


def lost_its_end(scene: Scene, broker: LocalKafka) -> None:
    """As when a replica that is behind becomes the leader: records that the log knows are there."""
    scene.gets_on()
    broker.kill()
    for mirror in scene.log.mirrors(scene.topic):
        upto = scene.chance.randrange(max(1, mirror.next_kafka_offset))
        cut_back(broker, scene.topic, mirror.partition, upto)
    broker.start()
    scene.gets_on()


def lost_all(scene: Scene, broker: LocalKafka) -> None:
    """While nobody writes: it does not know us any more, and takes what we send for the first."""
    with scene.written.nobody_writes():
        scene.catches_up()
        broker.kill()
        for mirror in scene.log.mirrors(scene.topic):
            cut_back(broker, scene.topic, mirror.partition, 0)
        broker.start()
    scene.gets_on()


def forgot_us(scene: Scene, broker: LocalKafka) -> None:
    """What is there tells where we were, also when the log has been told of little of it."""
    scene.sends(100)
    scene.kill_worker()
    set_broker(broker.bootstrap_servers, producer_id_expiration_ms="1000")
    try:
        for mirror in scene.log.mirrors(scene.topic):
            asyncio.run(_until_forgotten(broker.bootstrap_servers, mirror))
    finally:
        set_broker(broker.bootstrap_servers, producer_id_expiration_ms=_A_DAY_MS)
    scene.start_worker()
    scene.gets_on()


async def _until_forgotten(bootstrap_servers: str, mirror: Mirror) -> None:
    port, target = KafkaPort(KafkaSettings.of(bootstrap_servers)), mirror.target
    try:
        seen = (await port.look((target.kafka_topic,))).topics[target.kafka_topic]
        place = Place(target.kafka_topic, seen.topic_id, mirror.partition)
        give_up = time.monotonic() + DEADLINE_SECONDS
        while (await port.evidence(place, target.producer_id)).last_sequence is not None:
            assert time.monotonic() < give_up, "the broker does not forget"
            await asyncio.sleep(0.05)
    finally:
        await port.close()
