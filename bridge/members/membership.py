"""What becomes of a group when members come, go, ask and acknowledge. Pure.

A change of a member's partitions has a generation of its own, later than all before. The member is
stale until it asks again and is told. What it is to lose stays granted to it until it has been
told, or a deadline is over; and as long as acknowledgements of it are being stored. Only then
somebody else gets it. So no partition has two owners at once, nor in one generation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from duolog.bridge.members.assignment import assign
from duolog.bridge.members.model import Grant, Member, Membership


def joined(group: Membership, member: Member) -> Membership:
    """Somebody comes, or comes again by the same id: what it has it keeps."""
    known = group.members.get(member.member_id)
    if known is not None:
        member = replace(
            known,
            holder=member.holder,
            session_seconds=member.session_seconds,
            heard_at=member.heard_at,
            is_provisional=known.is_provisional and member.is_provisional,
        )
    return _with_member(group, member)


def left(group: Membership, member_id: str) -> Membership:
    """It goes; its partitions are free when what it acknowledges now is stored."""
    members = {key: each for key, each in group.members.items() if key != member_id}
    grants = {
        partition: replace(grant, revoked_until=0.0) if grant.member_id == member_id else grant
        for partition, grant in group.grants.items()
    }
    return replace(group, members=members, grants=grants)


def heard(group: Membership, member_id: str, now: float, answering: int = 0) -> Membership:
    """It asks (`answering` 1), is answered (-1), or says that it is there."""
    member = group.members.get(member_id)
    if member is None:
        return group
    return _with_member(
        group, replace(member, heard_at=now, answering=max(0, member.answering + answering))
    )


def told(group: Membership, member_id: str) -> Membership:
    """It learns which partitions it has; what it was to lose it has let go."""
    member = group.members[member_id]
    return _with_member(group, replace(member, told=member.generation))


def made_full(group: Membership, member_id: str) -> Membership:
    """It has carried its id."""
    return _with_member(group, replace(group.members[member_id], is_provisional=False))


def expired(group: Membership, now: float) -> list[str]:
    """Those who have not been heard of for as long as their session lasts."""
    return [
        member.member_id
        for member in group.members.values()
        if member.expires_at is not None and member.expires_at <= now
    ]


def granted(
    group: Membership, member_id: str, partitions: Collection[int], until: float
) -> Membership:
    """A member gets partitions, of these the ones that nobody has."""
    member = group.members.get(member_id)
    mine = [
        each for each in sorted(partitions) if each < group.partitions and each not in group.grants
    ]
    if member is None or not mine:
        return group
    group = _changed(group, member, until)
    grants = {**group.grants, **{each: Grant(member_id, group.generation) for each in mine}}
    return replace(group, grants=grants)


def revoked(
    group: Membership, member_id: str, partitions: Collection[int], until: float
) -> Membership:
    """A member is to lose partitions, by then at the latest."""
    member = group.members.get(member_id)
    lost = {
        partition: replace(grant, revoked_until=until)
        for partition, grant in group.grants.items()
        if grant.member_id == member_id and partition in partitions and not grant.is_revoked
    }
    if not lost:
        return group
    if member is not None:
        group = _changed(group, member, until)
    return replace(group, grants={**group.grants, **lost})


def freed(group: Membership, now: float) -> tuple[Membership, Mapping[int, str]]:
    """Takes away what has been let go; who had it, by partition."""
    gone = {
        partition: grant.member_id
        for partition, grant in group.grants.items()
        if grant.is_revoked and not group.acking.get(partition) and _has_let_go(group, grant, now)
    }
    if not gone:
        return group, gone
    grants = {at: grant for at, grant in group.grants.items() if at not in gone}
    return replace(group, grants=grants), gone


def balanced(group: Membership) -> dict[int, str]:
    """Who is to have which partition, where nobody else assigns them."""
    owned = {at: grant.member_id for at, grant in group.grants.items() if not grant.is_revoked}
    return assign(list(group.members), group.partitions, owned)


def towards(group: Membership, target: Mapping[int, str], until: float) -> Membership:
    """Take back what is to be somebody else's, and give what is free."""
    for member_id in group.members:
        wanted = {at for at, owner in target.items() if owner == member_id}
        has = group.owned_by(member_id)
        group = revoked(group, member_id, has - wanted, until)
        group = granted(group, member_id, wanted - has, until)
    return group


def acking(group: Membership, partition: int, by: int) -> Membership:
    """An acknowledgement is being stored (1), or is (-1)."""
    count = group.acking.get(partition, 0) + by
    others = {at: each for at, each in group.acking.items() if at != partition}
    return replace(group, acking={**others, partition: count} if count > 0 else others)


def grown(group: Membership, partitions: int) -> Membership:
    """The topic has got more partitions."""
    return replace(group, partitions=max(group.partitions, partitions))


def is_between(group: Membership) -> bool:
    """Whether somebody has still to be told of a change, or to let go of something."""
    untold = any(each.is_stale for each in group.members.values() if not each.is_provisional)
    return untold or any(grant.is_revoked for grant in group.grants.values())


def next_event_at(group: Membership) -> float | None:
    """When the clock alone changes something: a session ends, or a wait for a member."""
    ends = [each.expires_at for each in group.members.values() if each.expires_at is not None]
    waits = [
        grant.revoked_until
        for at, grant in group.grants.items()
        if grant.revoked_until is not None and not group.acking.get(at)
    ]
    return min([*ends, *waits], default=None)


def _changed(group: Membership, member: Member, until: float) -> Membership:
    """Its partitions change: it has to be told."""
    generation = group.generation + 1
    member = replace(member, generation=generation, stale_until=until)
    return replace(_with_member(group, member), generation=generation)


def _with_member(group: Membership, member: Member) -> Membership:
    return replace(group, members={**group.members, member.member_id: member})


def _has_let_go(group: Membership, grant: Grant, now: float) -> bool:
    member = group.members.get(grant.member_id)
    if member is None or not member.is_stale:
        return True
    return grant.revoked_until is not None and now >= grant.revoked_until
