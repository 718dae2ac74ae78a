"""DataFusion, set up so that it reads what it is given and nothing else.

It asks for tables while it plans, on a thread where it must not be asked anything in return. So
the names are gathered in a first plan, the tables made outside, and the query planned again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions, Table
from datafusion.catalog import CatalogProvider, SchemaProvider

from duolog.sql.select.names import DEFAULT_SCHEMA, SYSTEM_SCHEMA, TableName
from duolog.sql.select.pushdown import NEVER_REACHED

_CATALOG = "duolog"
# These make a large value of small ones, in memory that is counted nowhere.
_REFUSED_FUNCTIONS = (
    *("array_repeat", "array_resize", "generate_series", "list_repeat", "list_resize", "lpad"),
    *("range", "repeat", "rpad"),
)
_REFUSED_TABLE_FUNCTIONS = ("generate_series", "range")


class Session:
    """One query's DataFusion. It has the tables that were added, and no files."""

    def __init__(self, memory_bytes: int) -> None:
        self._asked: dict[TableName, None] = {}
        self._tables: dict[TableName, Any] = {}
        # One at a time: rows keep their order, and the process has a core left for others.
        config = (
            SessionConfig()
            .with_target_partitions(1)
            .with_create_default_catalog_and_schema(enabled=False)
            .with_default_catalog_and_schema(_CATALOG, DEFAULT_SCHEMA)
            .with_information_schema(enabled=False)
        )
        runtime = (
            RuntimeEnvBuilder().with_disk_manager_disabled().with_fair_spill_pool(memory_bytes)
        )
        self._context = SessionContext(config, runtime)
        self._context.register_catalog_provider(_CATALOG, _Catalog(self._asked, self._tables))
        for name in _REFUSED_FUNCTIONS:
            self._context.deregister_udf(name)
        for name in _REFUSED_TABLE_FUNCTIONS:
            self._context.deregister_udtf(name)
        self._making = SessionContext()  # only makes views
        self._options = (
            SQLOptions()
            .with_allow_ddl(allow=False)
            .with_allow_dml(allow=False)
            .with_allow_statements(allow=False)
        )

    def names_in(self, text: str) -> list[TableName]:
        """The tables that a query asks for. Whether it is right shows when it is planned."""
        with suppress(Exception):  # none of the tables is there yet
            self.plan(text)
        return list(self._asked)

    def add_table(self, name: TableName, key: str, dataset: Any) -> None:
        """A table made in Python; in plans it is called `key`."""
        self._making.register_table(key, Table(dataset))
        self._tables[name] = self._making.table(key).limit(NEVER_REACHED).into_view()

    def plan(self, text: str) -> Any:
        """The query as a DataFrame; nothing has run yet."""
        return self._context.sql_with_options(text, self._options)


class _Catalog(CatalogProvider):  # type: ignore[misc]
    def __init__(self, asked: dict[TableName, None], tables: dict[TableName, Any]) -> None:
        self._asked = asked
        self._tables = tables

    def schema_names(self) -> set[str]:
        return {DEFAULT_SCHEMA, SYSTEM_SCHEMA}

    def schema(self, name: str) -> _Schema:
        return _Schema(name, self._asked, self._tables)


class _Schema(SchemaProvider):  # type: ignore[misc]
    def __init__(
        self, name: str, asked: dict[TableName, None], tables: dict[TableName, Any]
    ) -> None:
        self._name = name
        self._asked = asked
        self._tables = tables

    def table_names(self) -> set[str]:
        return {name.table for name in self._tables if name.schema == self._name}

    def table(self, name: str) -> Any:
        asked = TableName(self._name, name)
        self._asked[asked] = None
        return self._tables.get(asked)

    def table_exist(self, name: str) -> bool:
        return TableName(self._name, name) in self._tables
