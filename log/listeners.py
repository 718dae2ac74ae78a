"""Calls those who want to hear of what has happened. What they raise changes nothing of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ParamSpec

P = ParamSpec("P")
_LOGGER = logging.getLogger(__name__)


def call_listeners(
    listeners: Iterable[Callable[P, object]], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Call each of them. One that raises is logged: the others are called all the same."""
    for listener in tuple(listeners):
        try:
            listener(*args, **kwargs)
        except BaseException:
            _LOGGER.exception("A listener raised. What it was told of has happened.")
