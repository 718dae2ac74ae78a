"""A frame's columns as tasks will see them in Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.errors import InvalidRows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types of Spark's columns, timestamps in UTC."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema)
    except (PySparkException, TypeError) as error:
        kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        raise InvalidRows(
            f"These columns cannot come to Python as Arrow: {kinds}. {error} Cast or drop what is "
            "not a plain type."
        ) from error
