"""The demo's first half: a route, rows that go by it, a group that reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.table import Table

from duolog.cli.story import Story
from duolog.log.model import GroupPosition, Op, Route, TopicSettings

if TYPE_CHECKING:
    from duolog.log import LogAccess
    from duolog.log.fetched import ReadRecord

TOPIC = "orders"
GROUP = "billing"
_TABLE = "shop.orders"
_CONDITION = "status = 'paid' AND qty * price >= 10"


class _Order(NamedTuple):
    id: int
    customer: str
    qty: int
    price: float
    status: str

    @property
    def is_wanted(self) -> bool:
        """The route's condition once more, in Python, to check it by."""
        return self.status == "paid" and self.qty * self.price >= 10


_ORDERS = [
    _Order(1, "ada", 3, 9.5, "paid"),
    _Order(2, "bob", 1, 80.0, "new"),
    _Order(3, "ada", 2, 4.0, "paid"),
    _Order(4, "eve", 5, 12.0, "paid"),
    _Order(5, "bob", 1, 10.0, "paid"),
    _Order(6, "ada", 7, 3.25, "paid"),
]


def make_topic(story: Story, log: LogAccess) -> None:
    from duolog.log.routing.filter.parse import parse_filter

    story.step(f"A topic, and a route that feeds it from table {_TABLE}")
    log.create_topic(TOPIC, TopicSettings(partitions=3))
    route = Route(
        _TABLE,
        frozenset({Op.INSERT, Op.UPDATE}),
        parse_filter(_CONDITION),
        partition_by=("customer",),
    )
    log.add_route(TOPIC, route)
    story.tell(f"{TOPIC}: 3 partitions, by customer, on insert and update,")
    story.tell(f"where {_CONDITION}")
    story.check("The topic has its route", holds=log.topic(TOPIC).routes == (route,))


def publish_rows(story: Story, log: LogAccess) -> None:
    story.step("Rows come in; the route decides")
    rows = [order._asdict() for order in _ORDERS]
    placed = log.publish_rows(_TABLE, Op.INSERT, rows, ["id"])
    places = {
        json.loads(record.value or b"")["id"]: (partition, record.offset)
        for partition, record in _records(log)
    }
    story.show(_table(places))
    wanted = [order for order in _ORDERS if order.is_wanted]
    story.check(
        f"{len(wanted)} of {len(_ORDERS)} rows meet the condition, and exactly these are there",
        holds=sorted(places) == [order.id for order in wanted] and len(placed) == len(wanted),
    )
    partitions = {(order.customer, places[order.id][0]) for order in wanted if order.id in places}
    story.check(
        "All rows of one customer lie in one partition",
        holds=len(partitions) == len({customer for customer, _ in partitions}),
    )


def _table(places: dict[int, tuple[int, int]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("id", "customer", "qty", "price", "status", "where it lies"):
        is_number = heading in {"id", "qty", "price"}
        table.add_column(heading, justify="right" if is_number else "left")
    for order in _ORDERS:
        partition, offset = places.get(order.id, (None, None))
        table.add_row(
            str(order.id),
            order.customer,
            str(order.qty),
            f"{order.price:.2f}",
            order.status,
            "-" if partition is None else f"partition {partition}, offset {offset}",
        )
    return table


def read_and_acknowledge(story: Story, log: LogAccess) -> tuple[GroupPosition, ...]:
    """Returns where the group is then."""
    story.step("A group reads and acknowledges")
    partition = max(log.offsets(TOPIC), key=lambda each: each.next_offset).partition
    before = list(log.fetch(TOPIC, partition, 0))
    log.ack(GROUP, TOPIC, before[1].offset, partition)
    position = log.group_position(GROUP, TOPIC, partition)
    goes_on_at = -1 if position is None else position.position
    story.tell(f"{GROUP} acknowledges up to offset {before[1].offset} of partition {partition}.")
    after = list(log.fetch(TOPIC, partition, goes_on_at))
    story.check(
        f"It goes on at offset {goes_on_at}: what it acknowledged does not come again",
        holds=goes_on_at == before[1].offset + 1 and after == before[2:],
    )
    log.ack(GROUP, TOPIC, before[0].offset, partition)
    story.check(
        "Acknowledging less than before does not move it back",
        holds=log.group_position(GROUP, TOPIC, partition) == position,
    )
    return log.group_positions(GROUP)


def _records(log: LogAccess) -> Iterator[tuple[int, ReadRecord]]:
    for each in log.offsets(TOPIC):
        for record in log.fetch(TOPIC, each.partition, each.start):
            yield each.partition, record
