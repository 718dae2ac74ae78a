from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duolog.avro.names import avro_name, column_name, full_name, is_avro_name, type_name
from duolog.errors import InvalidRows, InvalidSchema

_UNICODE = st.characters(exclude_categories=["Cs"])
_COLUMNS = st.one_of(
    st.text(_UNICODE, min_size=1),
    st.text("_x05FA1é 😀", min_size=1),
    st.lists(
        st.sampled_from(["_", "_x005F_", "_x0041_", "_x00e9_", "_x005F", "x0041_", "é", "😀", "1"]),
        min_size=1,
    ).map("".join),
)
_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*|(_x[0-9A-F]{4}_?)+", fullmatch=True)


@pytest.mark.parametrize(
    ("column", "avro"),
    [
        ("id", "id"),
        ("_id2", "_id2"),
        ("order id", "order_x0020_id"),
        ("größe", "gr_x00F6__x00DF_e"),
        ("2nd", "_x0032_nd"),
        ("a.b-c", "a_x002E_b_x002D_c"),
        ("😀", "_xD83D__xDE00_"),
        ("_x0020_", "_x005F_x0020_"),
        ("_x0020_x0020_", "_x005F_x0020_x005F_x0020_"),
        ("_x005Fé", "_x005F_x005F_x00E9_"),
        ("_x00e9_", "_x00e9_"),
    ],
)
def test_each_column_has_its_avro_name(column: str, avro: str) -> None:
    assert avro_name(column) == avro
    assert column_name(avro) == column


@given(_COLUMNS)
@example("_x005F\u00e9")
@example("\n")
@example("a\n")
def test_every_column_name_comes_back(column: str) -> None:
    name = avro_name(column)
    assert is_avro_name(name)
    assert column_name(name) == column


@given(_COLUMNS, _COLUMNS)
def test_two_columns_never_share_an_avro_name(one: str, other: str) -> None:
    assert (avro_name(one) == avro_name(other)) == (one == other)


@given(_NAMES)
@example("_xD800_")
@example("_x0041_")
@example("_xFEFF_a")
def test_any_avro_name_is_a_column_name(name: str) -> None:
    column = column_name(name)
    column.encode()
    assert column == name or avro_name(column) == name


@pytest.mark.parametrize("name", ["_xD800_", "_x0041_", "_xDE00__xD83D_"])
def test_an_escape_that_is_never_written_is_no_escape(name: str) -> None:
    assert column_name(name) == name


@pytest.mark.parametrize("column", ["", "\ud800"])
def test_a_column_that_cannot_be_named_is_refused(column: str) -> None:
    with pytest.raises(InvalidRows, match="Rename it"):
        avro_name(column)


@pytest.mark.parametrize("name", ["", "a b", "1a", "é", "a\n", "a.b"])
def test_what_is_no_avro_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchema, match="is no Avro name"):
        column_name(name)


@pytest.mark.parametrize(
    ("table", "full"),
    [
        ("orders", "orders"),
        ("shop.orders", "shop.orders"),
        ("my-shop.2024.order lines", "my_x002D_shop._x0032_024.order_x0020_lines"),
        ("shop.string", "shop._x0073_tring"),
        ("int.orders", "int.orders"),
    ],
)
def test_any_table_names_a_record(table: str, full: str) -> None:
    assert full_name(table) == full


@given(_COLUMNS | st.sampled_from(["int", "string", "_x0069_nt"]))
def test_two_columns_never_share_a_types_name(column: str) -> None:
    assert is_avro_name(type_name(column))
    assert (type_name(column) == type_name("int")) == (column == "int")


@pytest.mark.parametrize("table", ["", "shop.", ".orders", "a..b"])
def test_a_table_with_an_empty_part_is_refused(table: str) -> None:
    with pytest.raises(InvalidRows, match="Rename it"):
        full_name(table)
