"""`duolog group …`"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duolog import output
from duolog.cli import completing, shown
from duolog.cli.opening import confirmed, opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, OnePartition, Yes
from duolog.cli.starts import start_of
from duolog.log.model import GroupMember, GroupPosition, PartitionOffsets, by_topic

if TYPE_CHECKING:
    from duolog.log import LogAccess

app = typer.Typer(no_args_is_help=True, help="Look at consumer groups, move and remove them.")

GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", show_default=False, autocompletion=completing.groups)
]


@dataclass(frozen=True, slots=True)
class Progress:
    """A group in one partition of a topic that it reads; `position` may not be set yet."""

    group: str
    offsets: PartitionOffsets
    position: GroupPosition | None

    @property
    def lag(self) -> int:
        """How many of the records that are kept it has still to read."""
        begins = self.offsets.start
        if self.position is not None:
            begins = max(begins, self.position.position)
        return max(0, self.offsets.next_offset - begins)


@app.command(name="list")
def list_groups(
    log: LogFolder = None, url: HostUrl = None, token: HostToken = None, as_json: AsJson = False
) -> None:
    """All groups with their lag in records."""
    with opened(log, url, token) as opened_log:
        groups: dict[str, list[Progress]] = defaultdict(list)
        for progress in _progress(opened_log, None):
            groups[progress.group].append(progress)
    if as_json:
        for group, parts in groups.items():
            output.json_line(
                {
                    "group": group,
                    "topics": _topics(parts),
                    "lag": _lag(parts),
                    "changed_at_ms": _changed_at(parts),
                }
            )
    elif not groups:
        output.note("No group has a position yet.")
    else:
        output.table(
            ["group", "topics", ">lag", "last moved"],
            [
                [
                    group,
                    ", ".join(_topics(parts)),
                    shown.count(_lag(parts)),
                    shown.moment(_changed_at(parts)),
                ]
                for group, parts in groups.items()
            ],
        )


@app.command()
def describe(
    group: GroupName,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Where a group is in each partition of the topics that it reads, and who reads for it now."""
    from duolog.errors import UnknownGroup

    with opened(log, url, token) as opened_log:
        parts = list(_progress(opened_log, group))
        members = opened_log.group_members(group)
    if not parts and not members:
        raise UnknownGroup(f"Group '{group}' has no position in any topic.")
    if as_json:
        for progress in parts:
            output.json_line(_fields(progress, members))
        return
    output.table(
        ["topic", ">part.", ">position", ">next", ">lag", "moved", "by"],
        [
            [
                each.offsets.topic,
                str(each.offsets.partition),
                "-" if each.position is None else shown.count(each.position.position),
                shown.count(each.offsets.next_offset),
                shown.count(each.lag),
                "" if each.position is None else shown.moment(each.position.changed_at_ms),
                "" if each.position is None else each.position.changed_by,
            ]
            for each in parts
        ],
    )
    if members:
        output.table(
            ["member", "kind", "client", "host", "topic", "partitions", ">generation"],
            [
                [
                    each.member_id,
                    each.kind,
                    each.client_id,
                    each.host,
                    each.topic,
                    ", ".join(map(str, each.partitions)) or "-",
                    "" if each.generation is None else str(each.generation),
                ]
                for each in members
            ],
        )


@app.command()
def seek(
    group: GroupName,
    topic: Annotated[str, typer.Option(metavar="T", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="start, end, an offset, an ISO 8601 time, or @ and milliseconds since 1970.",
            show_default=False,
        ),
    ],
    partition: OnePartition = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Move a group: it reads on from there. All partitions, or one."""
    start = start_of(to, "--to")
    with opened(log, url, token) as opened_log:
        found = opened_log.topic(topic)
        numbers = range(found.partitions) if partition is None else (partition,)
        moves = []
        for number in numbers:  # all of them looked up before the first is moved
            known = opened_log.group_position(group, found.id, number)
            moves.append((number, known, opened_log.resolve(found.id, number, start)))
        if not dry_run:
            for number, known, offset in moves:
                version = 0 if known is None else known.version
                opened_log.seek(group, found.id, number, offset, expected_version=version)
    if as_json:
        for number, known, offset in moves:
            output.json_line(
                {
                    "group": group,
                    "topic": found.name,
                    "partition": number,
                    "was": None if known is None else known.position,
                    "position": offset,
                    "dry_run": dry_run,
                }
            )
        return
    output.table(
        ["topic", ">partition", ">was", ">would be" if dry_run else ">is"],
        [
            [
                found.name,
                str(number),
                "-" if known is None else shown.count(known.position),
                shown.count(offset),
            ]
            for number, known, offset in moves
        ],
    )


@app.command()
def delete(
    group: GroupName,
    topic: Annotated[
        str | None, typer.Option(metavar="T", help="Only there.", show_default="all topics")
    ] = None,
    yes: Yes = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Forget a group's positions."""
    with opened(log, url, token) as opened_log:
        where = "" if topic is None else f" in topic '{opened_log.topic(topic).name}'"
        confirmed(f"Forget where group '{group}' is{where}?", yes=yes)
        deleted = opened_log.delete_group(group, topic)
    if as_json:
        output.json_line({"group": group, "positions_deleted": deleted})
    else:
        output.note(f"Forgot {shown.things(deleted, 'position')} of group '{group}'{where}.")


def _progress(log: LogAccess, group: str | None) -> list[Progress]:
    """Each group in all partitions of each topic where it has a position in one."""
    positions = {
        (each.group, each.topic, each.partition): each for each in log.group_positions(group)
    }
    heads = by_topic(log.all_offsets())
    return [
        Progress(name, offsets, positions.get((name, topic, offsets.partition)))
        for name, topic in dict.fromkeys((group, topic) for group, topic, _ in positions)
        for offsets in heads.get(topic, ())
    ]


def _fields(progress: Progress, members: Sequence[GroupMember]) -> dict[str, Any]:
    position, offsets = progress.position, progress.offsets
    owners = [
        each
        for each in members
        if each.topic == offsets.topic and offsets.partition in each.partitions
    ]
    return {
        "group": progress.group,
        "topic": offsets.topic,
        "partition": offsets.partition,
        "position": None if position is None else position.position,
        "upto_offset": None if position is None else position.upto_offset,
        "start_offset": offsets.start,
        "next_offset": offsets.next_offset,
        "lag": progress.lag,
        "version": None if position is None else position.version,
        "changed_at_ms": None if position is None else position.changed_at_ms,
        "changed_by": None if position is None else position.changed_by,
        "member": owners[0].member_id if owners else None,
        "member_kind": owners[0].kind if owners else None,
    }


def _topics(parts: list[Progress]) -> list[str]:
    return list(dict.fromkeys(each.offsets.topic for each in parts))


def _lag(parts: list[Progress]) -> int:
    return sum(each.lag for each in parts)


def _changed_at(parts: list[Progress]) -> int:
    return max(each.position.changed_at_ms for each in parts if each.position is not None)
