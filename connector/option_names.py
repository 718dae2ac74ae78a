"""What options are there, by whatever case their names come; what sink and source share of them.

Spark starts several processes for each read, so what knows a registry's options is loaded only
where there are any.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from duolog.connector.option_text import text
from duolog.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class Option:
    """One option, for messages and documents."""

    name: str
    meaning: str
    default: str = ""


PLACE_OPTIONS: Final = (
    Option("path", "the log's folder, which is there already", "this or `url`"),
    Option("url", "where the log's host is asked, as in `https://bridge.example:8443`"),
    Option("token", "with `url`: what the host lets in", "the variable `DUOLOG_TOKEN`"),
    Option(
        "allowPlainHttp", "with `url`: `true` sends the token over a network without TLS", "false"
    ),
    Option("caPath", "with `url`: a PEM file of who vouches for the host", "the usual authorities"),
)
"""Where the log is: `place.LogPlace`."""


class OptionNames:
    """The options of one side. `doing` ends the sentence that there is no such option."""

    def __init__(
        self,
        options: Sequence[Option],
        *,
        doing: str = "",
        passed_over: frozenset[str] = frozenset(),
        no_brokers: bool = False,
    ) -> None:
        self._by_name = {option.name.lower(): option.name for option in options}
        self._doing = doing
        self._passed_over = passed_over
        self._no_brokers = no_brokers

    def sorted_out(self, given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
        """Ours by their right names, and the registry's."""
        known: dict[str, str] = {}
        others: dict[str, str] = {}
        for name, value in given.items():
            ours = self._by_name.get(name.lower())
            if ours is None:
                if name.lower() not in self._passed_over:
                    others[name] = text(name, value)
            elif ours in known:
                raise InvalidSetting(f"Option '{ours}' is given twice. Give it once.")
            else:
                known[ours] = text(ours, value)
        if others:
            self._check_registry(others)
        return known, others

    def _check_registry(self, others: Mapping[str, str]) -> None:
        from duolog.avro.registry.options import RegistryOptions, is_registry_option

        for name in others:
            if not is_registry_option(name):
                raise InvalidSetting(
                    f"There is no option '{name}'{self._doing}. {self._hint(name)}"
                )
        RegistryOptions.of(others)

    def _hint(self, name: str) -> str:
        if self._no_brokers and name.lower().startswith("kafka."):
            return "There are no brokers here: leave it out, and give 'path' or 'url'."
        near = difflib.get_close_matches(name.lower().replace("_", ""), self._by_name, n=1)
        if near:
            return f"Did you mean '{self._by_name[near[0]]}'?"
        return f"There are {', '.join(self._by_name.values())}, and a registry's."
