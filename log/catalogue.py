"""Topics and routes: what there is, by name, alias and id. Pure, but for loading.

A catalogue is never changed; each change makes a new one. So whoever holds one, holds a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from duolog.errors import (
    InvalidFilter,
    InvalidSetting,
    NameTaken,
    RouteTaken,
    UnknownPartition,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.model import (
    Expression,
    Op,
    PayloadMode,
    Retention,
    Route,
    Topic,
    TopicPartition,
    TopicSettings,
    words,
)
from duolog.log.names import (
    check_partitions,
    check_settings,
    check_text_name,
    check_topic_name,
    check_unicode,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.patterns import check_patterns
from duolog.log.routing.plan import RoutingPlan
from duolog.log.store import Store
from duolog.log.topic_json import topic_from_bytes

_ROUTED = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})


@dataclass(frozen=True)
class Catalogue:
    """All topics at one moment. Ids are never given out twice."""

    by_id: Mapping[int, Topic] = field(default_factory=dict)
    next_id: int = 1

    @cached_property
    def by_name(self) -> Mapping[str, Topic]:
        """Topics by name and by alias."""
        named = {topic.name: topic for topic in self.by_id.values()}
        aliases = {topic.alias: topic for topic in self.by_id.values() if topic.alias}
        return {**aliases, **named}

    @cached_property
    def plan(self) -> RoutingPlan:
        """The routes of all topics, as tasks take them along."""
        return RoutingPlan.of(self.by_id.values())

    def topic(self, reference: str | int) -> Topic:
        """The topic of this name, alias or id."""
        found = (
            self.by_id.get(reference)
            if isinstance(reference, int) and not isinstance(reference, bool)
            else self.by_name.get(reference)
            if isinstance(reference, str)
            else None
        )
        if found is None and isinstance(reference, str) and reference.isascii():
            found = self.by_id.get(int(reference)) if reference.isdigit() else None
        if found is None:
            raise UnknownTopic(f"There is no topic {reference!a:.100}. {self._topics_shown()}")
        return found

    def _topics_shown(self) -> str:
        names = sorted(topic.name for topic in self.by_id.values())
        if not names:
            return "There are none yet: create one first."
        more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
        return f"There are: {', '.join(names[:5])}{more}."

    def with_topic(
        self, name: str, settings: TopicSettings, now_ms: int
    ) -> tuple[Catalogue, Topic]:
        """Create a topic."""
        check_topic_name(name)
        check_settings(settings)
        for taken in (name, settings.alias):
            if taken is not None and taken in self.by_name:
                raise NameTaken(
                    f"'{taken}' is already the name or alias of topic "
                    f"'{self.by_name[taken].name}'. Choose another."
                )
        if settings.alias == name:
            raise NameTaken(f"A topic's alias must differ from its name '{name}'.")
        topic = Topic(self.next_id, name, settings, (), now_ms, now_ms)
        return Catalogue({**self.by_id, topic.id: topic}, self.next_id + 1), topic

    def with_route(
        self, reference: str | int, route: Route, now_ms: int
    ) -> tuple[Catalogue, Topic]:
        """Add a route to a topic. One table and operation comes to a topic once."""
        topic = self.topic(reference)
        check_text_name(route.table, "table")
        for part in route.partition_texts:
            check_unicode(part, "partition column")
        if route.filter is not None:
            check_unicode(route.filter.text, "filter")
        _check_patterns(route)
        if not route.ops or not all(type(op) is Op and op in _ROUTED for op in route.ops):
            raise InvalidSetting("A route takes one or more of insert, update and delete.")
        if type(route.payload) is not PayloadMode or route.payload is PayloadMode.NONE:
            raise InvalidSetting("A route's payload is one of full, key and diff.")
        check_columns_named(route)
        for other in topic.routes:
            if other.table == route.table and (both := other.ops & route.ops):
                raise RouteTaken(
                    f"Topic '{topic.name}' already has a route for {route.table} on "
                    f"{words(both)}. Drop that route first, or leave these operations out."
                )
        return self._changed(replace(topic, routes=(*topic.routes, route)), now_ms)

    def without_route(
        self, reference: str | int, table: str, ops: Iterable[Op] | None, now_ms: int
    ) -> tuple[Catalogue, Topic]:
        """Drop a topic's routes for a table, or only some operations of them."""
        topic = self.topic(reference)
        dropped = _ROUTED if ops is None else frozenset(ops)
        if not any(route.table == table and route.ops & dropped for route in topic.routes):
            on = "" if ops is None else f" on {words(dropped)}"
            raise UnknownRoute(f"Topic '{topic.name}' has no route for {table}{on}.")
        kept = tuple(
            route if route.table != table else replace(route, ops=route.ops - dropped)
            for route in topic.routes
        )
        return self._changed(
            replace(topic, routes=tuple(route for route in kept if route.ops)), now_ms
        )

    def with_retention(
        self, reference: str | int, retention: Retention, now_ms: int
    ) -> tuple[Catalogue, Topic]:
        topic = self.topic(reference)
        settings = check_settings(replace(topic.settings, retention=retention))
        if settings == topic.settings:
            return self, topic
        return self._changed(replace(topic, settings=settings), now_ms)

    def with_partitions(
        self, reference: str | int, partitions: int, now_ms: int
    ) -> tuple[Catalogue, Topic]:
        """Give a topic more partitions."""
        topic = self.topic(reference)
        check_partitions(partitions)
        if partitions < topic.partitions:
            raise InvalidSetting(
                f"Topic '{topic.name}' has {topic.partitions} partitions and can only get more."
            )
        if partitions == topic.partitions:
            return self, topic
        settings = replace(topic.settings, partitions=partitions)
        return self._changed(replace(topic, settings=settings), now_ms)

    def without_topic(self, topic: Topic) -> Catalogue:
        return Catalogue(
            {id_: other for id_, other in self.by_id.items() if id_ != topic.id}, self.next_id
        )

    def _changed(self, topic: Topic, now_ms: int) -> tuple[Catalogue, Topic]:
        changed = replace(topic, updated_at_ms=max(now_ms, topic.updated_at_ms))
        return Catalogue({**self.by_id, topic.id: changed}, self.next_id), changed


def check_columns_named(route: Route) -> None:
    """Refuse COLUMNS that say nothing."""
    if route.columns is None:
        return
    if not route.columns or len(set(route.columns)) < len(route.columns):
        raise InvalidSetting("The columns of a route are one or more, each named once.")
    for name in route.columns:
        check_text_name(name, "column")
    if route.payload is PayloadMode.KEY:
        raise InvalidSetting("A route with payload key carries the key alone: leave columns out.")


def partition_of(topic: Topic, partition: int) -> TopicPartition:
    """One of the topic's partitions."""
    is_number = isinstance(partition, int) and not isinstance(partition, bool)
    if not is_number or not 0 <= partition < topic.partitions:
        raise UnknownPartition(
            f"Topic '{topic.name}' has partitions 0 to {topic.partitions - 1}, not {partition!r}."
        )
    return TopicPartition(topic.id, partition)


def partitions_of(topic: Topic) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.id, number) for number in range(topic.partitions))


def load_catalogue(store: Store) -> Catalogue:
    topics = [topic_from_bytes(stored) for _, stored in store.scan("topics", b"", b"\xff" * 5)]
    next_id = store.get("meta", NEXT_TOPIC_ID)
    return Catalogue(
        {topic.id: topic for topic in topics}, 1 if next_id is None else int(next_id.decode())
    )


NEXT_TOPIC_ID = b"next_topic_id"


def _check_patterns(route: Route) -> None:
    """What a route calculates may come as a tree, which nobody has read as SQL here."""
    expressions = (part for part in route.partition_by if isinstance(part, Expression))
    for each in (route.filter, *expressions):
        if each is None:
            continue
        try:
            check_patterns(each.tree)
        except Mistake as mistake:
            raise InvalidFilter(mistake.reason, text=each.text) from None
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidFilter(f"This cannot be run: {error}", text=each.text) from error
