"""Which topic or system table a name in a query means.

DataFusion makes names without quotes lower case, so a name that is nobody's as it stands is looked
for whatever its case. `shop.orders` is the topic of this name; only `system.…` is the log's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from duolog.errors import UnknownTopic
from duolog.sql.select.system_tables import SYSTEM_TABLES

if TYPE_CHECKING:
    from duolog.log.access import LogAccess
    from duolog.log.model import Topic

DEFAULT_SCHEMA = "public"
SYSTEM_SCHEMA = "system"


class TableName(NamedTuple):
    """A table as DataFusion asks for it."""

    schema: str
    table: str

    def __str__(self) -> str:
        return self.table if self.schema == DEFAULT_SCHEMA else f"{self.schema}.{self.table}"

    @property
    def is_system(self) -> bool:
        return self.schema == SYSTEM_SCHEMA and self.table in SYSTEM_TABLES


def topic_named(log: LogAccess, name: str) -> Topic | None:
    """The topic of this name, alias or id."""
    try:
        return log.topic(name)
    except UnknownTopic:
        pass
    wanted = name.lower()
    found = [
        topic
        for topic in log.topics()
        if wanted in (topic.name.lower(), (topic.alias or "").lower())
    ]
    return found[0] if len(found) == 1 else None
