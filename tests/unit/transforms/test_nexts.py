"""A second function of a target: which of the two is applied, and what can't follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrator.errors import MappingError
from transforms import Mapping, nexts
from transforms.sql_file import _heads


def two(key: str = "id", **more: Any) -> Mapping:
    mapping = Mapping()
    mapping.target("t", key="id")(lambda a, b: a)
    mapping.target("u", key="id")(lambda a: a)
    mapping.next("t", key=key, **more)(lambda a, b: b)
    return mapping


def test_the_present_function_makes_the_target_until_the_next_one_is_in_force() -> None:
    mapping = two()
    assert [one.name for one in mapping.targets] == ["t", "u"]
    assert nexts.in_force(mapping, ()).targets == mapping.targets
    later = nexts.in_force(mapping, ["t"])
    assert later["t"] == mapping.nexts["t"]
    assert later["u"] == mapping["u"]
    assert later.nexts == mapping.nexts


def test_a_table_beside_is_one_target_more() -> None:
    mapping = two()
    both = nexts.in_force(mapping, (), {"t": "t_beside"})
    assert [one.name for one in both] == ["t", "u", "t_beside"]
    assert both["t"] == mapping["t"]
    assert both["t_beside"].function is mapping.nexts["t"].function
    assert [one.name for one in nexts.alone(mapping, ["t"])] == ["t"]


def test_what_is_wrong_with_declarations_stays_known() -> None:
    mapping = two()
    mapping.hold(MappingError("wrong"))
    assert [str(one) for one in nexts.in_force(mapping, ["t"]).broken] == ["wrong"]


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"key": "no"}, "its key columns are no, those of the present one id"),
        ({"sources": ["a", "c"]}, "its source tables are a, c, those of the present one a, b"),
        ({"grain": "a.id"}, "the next one is joined (grain=)"),
        ({"surrogates": {"id": "t"}}, "its surrogates are ('id', 't'), those of the present one none"),
    ],
)
def test_what_cannot_follow_is_named(given: dict[str, Any], cause: str) -> None:
    mapping = two(**given)
    with pytest.raises(MappingError, match="can't follow the one that makes it") as caught:
        nexts.refuse_misfit(mapping, "t")
    assert caught.value.cause.startswith(cause)
    nexts.refuse_misfit(two(), "t")  # the control


def test_a_next_function_needs_a_present_one_that_is_row_wise() -> None:
    mapping = Mapping()
    mapping.target("t", key="id", grain="a.id")(lambda a: a)
    mapping.next("t", key="id")(lambda a: a)
    mapping.next("v", key="id")(lambda a: a)
    with pytest.raises(MappingError, match="the present one is joined"):
        nexts.refuse_misfit(mapping, "t")
    with pytest.raises(MappingError, match="follows none") as caught:
        nexts.refuse_misfit(mapping, "v")
    assert '@mapping.target("v", ...)' in caught.value.remedy


def test_a_target_has_one_next_function() -> None:
    mapping = two()
    with pytest.raises(MappingError, match="two next functions"):
        mapping.next("t", key="id")(lambda a, b: a)


def test_a_query_may_be_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "t.sql"
    file.write_text("-- target: t\n-- key: id\nSELECT id FROM a;\n-- next: t\n-- key: id\nSELECT 1 FROM a\n")
    now, later = _heads(file)
    assert (now.one("target"), now.one("next")) == ("t", "")
    assert (later.one("target"), later.one("next")) == ("", "t")
