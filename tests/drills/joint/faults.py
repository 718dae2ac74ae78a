"""What happens to a group of both kinds, and what is to come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duolog.bridge.kafka.local import LocalKafka
from tests.drills.joint.group import PROTOCOLS, Joint
from tests.drills.joint.plain import PlainMember

Ending = Callable[[LocalKafka], None]

_AWAY_SECONDS = 2.0
_SHORT_SESSION = {"session.timeout.ms": 6000}  # the least that a broker takes


def kafka_consumer_killed(joint: Joint, protocol: str) -> None:
    """What it has not committed is processed by native members, and nothing else twice."""
    settings: dict[str, Any] = PROTOCOLS[protocol]
    if protocol != "kip-848":
        settings = {**settings, **_SHORT_SESSION}
    joint.native("a")
    victim = joint.in_process("one", settings)
    joint.until_all_are_done("native", "process")
    victim.hold_acks()
    joint.publish(10 * joint.partitions)
    joint.until_nothing_is_left()
    victim.kill()
    unacked = joint.ledger.by("process") - joint.ledger.acked
    assert unacked, "it was killed with nothing to do"
    joint.until_only("native-a")
    joint.until(lambda: unacked <= joint.ledger.by("native"), "the rest is processed natively")
    joint.until_nothing_is_left()
    joint.check()
    assert joint.ledger.twice() == unacked, joint.ledger.twice() ^ unacked


def broker_away(joint: Joint, broker: LocalKafka, end: Ending, protocol: str) -> None:
    """An acknowledgement that meets no broker counts when it is answered, and not before."""
    joint.in_kafka("one", PROTOCOLS[protocol])
    native = joint.native("a")
    joint.until_all_are_done("kafka", "native")
    native.hold_acks()
    joint.publish(10 * joint.partitions)
    joint.until_nothing_is_left()
    mine = joint.ledger.by("native") - joint.ledger.acked
    assert mine, "the native member has nothing to acknowledge"
    end(broker)
    try:
        native.release_acks()
        native.until_it_acks()
        too_soon = joint.is_so_within(_AWAY_SECONDS, lambda: bool(mine & joint.ledger.acked))
        assert not too_soon, "an acknowledgement was confirmed that Kafka does not know of"
    finally:
        broker.start()
    joint.until(lambda: mine <= joint.ledger.acked or native.has_lost_some, "it is answered")
    native.close()
    joint.until_only("kafka-one")
    joint.native("b")
    joint.until_all_are_done("kafka", "native-b")
    joint.check()


def polls_too_rarely(joint: Joint, protocol: str) -> None:
    """Its session ends: others go on behind its last acknowledgement, and it is told by name."""
    joint.in_kafka("one", PROTOCOLS[protocol])
    joint.until_all_are_done("kafka")
    rare = joint.plain("rare")
    _until_it_shares(joint, rare, session_timeout_seconds=1)
    joint.publish(10 * joint.partitions)
    had = {at: rare.next_offsets[at] for at in rare.assigned & rare.next_offsets.keys()}
    assert had, "it has read nothing"
    for partition, upto in had.items():
        _is_refused(rare.ack(partition, upto - 2), "")
        joint.ledger.note_acked(joint.number(partition, at) for at in range(upto - 1))
    unacked = joint.ledger.by("plain") - joint.ledger.acked
    joint.until_only("kafka-one")
    joint.until(lambda: unacked <= joint.ledger.by("kafka"), "the rest is processed in Kafka")
    joint.until_nothing_is_left()
    ends = joint.until_at_the_end(*range(joint.partitions))
    for partition, upto in had.items():
        _is_refused(rare.ack(partition, upto - 1), "UnknownMember")
    _stays(joint, (ends, ends))
    assert joint.ledger.twice() == unacked, joint.ledger.twice() ^ unacked
    _until_it_shares(joint, rare, session_timeout_seconds=60)  # by the same id
    joint.check_acks()


def acks_after_revocation(joint: Joint, protocol: str) -> None:
    """It is refused by name, whatever it acknowledges, and the new owner stays where it is."""
    late = joint.plain("late")
    joint.publish(10 * joint.partitions)

    def has_read_all() -> bool:
        late.go_on(session_timeout_seconds=60)
        return len(joint.ledger.by("plain")) == joint.published

    joint.until(has_read_all, "the only member reads all")
    for partition in range(joint.partitions):
        _is_refused(late.ack(partition, 3), "")
        joint.ledger.note_acked(joint.number(partition, at) for at in range(4))
    before = late.ids
    other = joint.in_kafka("one", PROTOCOLS[protocol])
    _until_it_shares(joint, late)
    taken = sorted(set(range(joint.partitions)) - late.assigned)
    joint.until_at_the_end(*taken)
    other.pause()
    other.until_it_rests()
    joint.publish(joint.partitions)
    where = joint.positions(), joint.committed()
    end = joint.published // joint.partitions
    for partition in taken:
        for upto in (3, end - 1):  # behind the new owner, and what it has not read yet
            _is_refused(late.ack(partition, upto, **before), "StaleGeneration")
            _is_refused(late.ack(partition, upto), "PartitionRevoked")
    _stays(joint, where)
    other.go_on()
    for partition in late.assigned:
        _is_refused(late.ack(partition, late.next_offsets[partition] - 1), "")
    joint.until_at_the_end(*taken)
    joint.check_acks()
    again = {joint.number(partition, at) for partition in taken for at in range(4, end)}
    assert joint.ledger.twice() <= again, joint.ledger.twice() - again


def _is_refused(code: str, wanted: str) -> None:
    assert code == wanted, f"an acknowledgement got '{code}' rather than '{wanted}'"


def _stays(joint: Joint, where: tuple[dict[int, int], dict[int, int]]) -> None:
    found = joint.positions(), joint.committed()
    assert found == where, f"the group was moved: {found} from {where}"


def _until_it_shares(joint: Joint, member: PlainMember, **asked: Any) -> None:
    """It has read something of what is its own, and Kafka has the others."""

    def is_so() -> bool:
        joint.publish(joint.partitions)
        member.go_on(**asked)
        return (
            0 < len(member.assigned) < joint.partitions
            and member.assigned <= member.next_offsets.keys()
        )

    joint.until(is_so, f"it shares the partitions: {member.assigned}")
