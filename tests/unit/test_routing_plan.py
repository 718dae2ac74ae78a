"""The index from changes to routes."""

from __future__ import annotations

import pickle

from duolog.log.model import Op, Route, Topic, TopicSettings
from duolog.log.routing.plan import RoutingPlan

INSERT, UPDATE, DELETE = Op.INSERT, Op.UPDATE, Op.DELETE


def route(table: str, *ops: Op) -> Route:
    return Route(table, frozenset(ops))


def topic(number: int, *routes: Route) -> Topic:
    return Topic(number, f"topic{number}", TopicSettings(), routes, 0, 0)


ORDERS = route("shop.orders", INSERT, UPDATE)
REMOVED = route("shop.orders", DELETE)
PEOPLE = route("shop.people", INSERT)
FIRST, SECOND, THIRD = topic(1, ORDERS, REMOVED), topic(2, ORDERS, PEOPLE), topic(3)
PLAN = RoutingPlan.of([SECOND, FIRST, THIRD])


def test_a_change_goes_to_all_topics_that_want_it() -> None:
    assert PLAN.routes_for("shop.orders", INSERT) == ((FIRST, ORDERS), (SECOND, ORDERS))
    assert PLAN.routes_for("shop.orders", DELETE) == ((FIRST, REMOVED),)
    assert PLAN.routes_for("shop.people", INSERT) == ((SECOND, PEOPLE),)


def test_a_row_as_read_goes_where_inserts_go() -> None:
    assert PLAN.routes_for("shop.people", Op.READ) == ((SECOND, PEOPLE),)
    assert PLAN.routes_for("shop.orders", Op.READ) == PLAN.routes_for("shop.orders", INSERT)


def test_what_nobody_wants_has_no_routes() -> None:
    assert PLAN.routes_for("shop.people", UPDATE) == ()
    assert PLAN.routes_for("elsewhere", INSERT) == ()
    assert RoutingPlan.of([]).routes_for("shop.orders", INSERT) == ()


def test_the_tables_with_routes_are_known() -> None:
    assert PLAN.tables == {"shop.orders", "shop.people"}


def test_plans_of_the_same_topics_are_equal_in_any_order() -> None:
    assert RoutingPlan.of([THIRD, FIRST, SECOND]) == PLAN
    assert RoutingPlan.of([FIRST, THIRD]) != PLAN


def test_a_plan_travels() -> None:
    assert pickle.loads(pickle.dumps(PLAN)) == PLAN
