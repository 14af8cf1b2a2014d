"""Types that a server's catalogue gives otherwise than they were declared."""

from __future__ import annotations

import pytest

from scenarios.rehearsal.schema import _mark_json
from scenarios.rehearsal.tables import Column


@pytest.mark.parametrize("check", ["json_valid(`about`)", 'json_valid("about")', b"json_valid(`about`)"])
def test_a_json_column_of_mariadb_is_one(check: object) -> None:
    columns = {"person": [Column("about", "longtext", True), Column("note", "longtext", True)]}
    _mark_json(columns, [("person", check), ("other", check)])
    assert [one.type for one in columns["person"]] == ["json", "longtext"]


def test_a_check_of_another_kind_changes_no_type() -> None:
    columns = {"person": [Column("about", "longtext", True)]}
    _mark_json(columns, [("person", "json_valid(`about`) or `about` = ''")])
    assert columns["person"][0].type == "longtext"
