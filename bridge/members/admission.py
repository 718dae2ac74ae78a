"""Whether a member may ask or acknowledge what it does. Pure; what is wrong is raised by name."""

from __future__ import annotations

from duolog.bridge.members.model import Member, Membership
from duolog.errors import PartitionHeld, PartitionRevoked, StaleGeneration, UnknownMember


def known(group: Membership, member_id: str, where: str) -> Member:
    """The member; raises UnknownMember."""
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMember(
            f"{where} has no member '{member_id}': it was not heard of for as long as its session "
            "lasts, it has left, or the host was started anew. Consume with this member_id and "
            "without a generation to join again; what was not acknowledged comes again."
        )
    return member


def check_generation(member: Member, generation: int, where: str) -> None:
    """Raises StaleGeneration for another one than that of the member's partitions."""
    if generation != member.generation:
        raise StaleGeneration(
            f"The partitions of member '{member.member_id}' of {where} have changed (generation "
            f"{member.generation}; it asks with {generation}). Acknowledge what is done, then "
            "consume with the member_id and without a generation to be told which it has."
        )


def check_ack(
    group: Membership, member: Member, generation: int, partition: int, now: float, where: str
) -> None:
    """Raises StaleGeneration or PartitionRevoked.

    A member that has not been told yet of a change may for a while acknowledge what it had.
    """
    in_time = not member.is_stale or now < member.stale_until
    if generation != member.told or not in_time:
        check_generation(member, generation, where)
        raise StaleGeneration(
            f"Member '{member.member_id}' of {where} has not been told generation {generation}. "
            "Consume with the member_id and without a generation first."
        )
    grant = group.grants.get(partition)
    if (
        grant is None
        or grant.member_id != member.member_id
        or grant.since > generation
        or (grant.revoked_until is not None and now >= grant.revoked_until)
    ):
        raise PartitionRevoked(
            f"Partition {partition} is not one of member '{member.member_id}' of {where} in "
            f"generation {generation}. What it has read there is read again by who has it now."
        )


def check_free(group: Membership, partitions: range, where: str) -> None:
    """Raises PartitionHeld where a member that shows its id has one of these partitions."""
    for partition in partitions:
        grant = group.grants.get(partition)
        member = None if grant is None else group.members.get(grant.member_id)
        if member is not None and not member.is_provisional:
            raise PartitionHeld(
                f"Member '{member.member_id}' of {where} has partition {partition}: "
                f"{member.holder}. Read with it as a member, or take another group.",
                holder=member.holder,
            )
