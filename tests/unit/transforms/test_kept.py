"""Plans that one start keeps for the next: the same plan comes back, or none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrator.errors import KeptPlanError
from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from migrator.run import kept_plans
from migrator.run.kept_plans import KeptPlans
from transforms.analysis.fingerprint import UNKNOWN, Fingerprint
from transforms.analysis.grain import reaches
from transforms.analysis.kept import record, restored, signature
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.registry import TargetMapping


def schema(name: str, *columns: str) -> TableSchema:
    return TableSchema(
        TableId("old", name), tuple(Column(one, "int32", False, "int") for one in columns), columns[:1]
    )


def column(name: str) -> TargetColumn:
    return TargetColumn(name, "int", "integer", True, False, False)


SCHEMAS = {"orders": schema("orders", "id", "day"), "line": schema("line", "id", "orders_id", "above")}
COLUMNS = (column("order_id"), column("total"), column("note"))
REFERENCES = (
    Reference(TableId("old", "line"), ("orders_id",), TableId("old", "orders"), ("id",)),
    Reference(TableId("old", "line"), ("above",), TableId("old", "line"), ("id",)),
)
CONTENT = Fingerprint("abc", "Spark 4", "outline")


def summary(*_: Any) -> Any:
    """Stands for a mapping's function."""


TARGET = TargetMapping("summary", ("order_id",), "orders.id", summary, ("orders", "line"))
PLAN = MappingPlan(
    target=TARGET,
    kind=MappingKind.GRAIN,
    columns=COLUMNS[:2],
    schemas=SCHEMAS,
    reads={"orders": ("id",), "line": ("id", "orders_id")},
    reaches=reaches(TARGET, SCHEMAS, REFERENCES[:1]),
)
ROW_WISE = replace(
    PLAN,
    target=replace(TARGET, grain=None, sources=("orders",)),
    kind=MappingKind.ROW_WISE,
    schemas={"orders": SCHEMAS["orders"]},
    reads={"orders": ("id",)},
    reaches=(),
)


def signed(**changed: Any) -> str:
    given: dict[str, Any] = {
        "target": TARGET,
        "schemas": SCHEMAS,
        "columns": COLUMNS,
        "references": REFERENCES,
        "surroundings": "code, versions",
    }
    return signature(**{**given, **changed})


@pytest.mark.parametrize("plan", [PLAN, ROW_WISE], ids=["joined", "row-wise"])
def test_a_kept_plan_comes_back_as_it_was(plan: MappingPlan) -> None:
    kept = json.loads(json.dumps(record(plan, signed(), CONTENT)))
    assert restored(kept, plan.target, SCHEMAS, COLUMNS, REFERENCES) == replace(plan, kept=CONTENT.text)


def test_a_table_that_is_read_twice_keeps_its_link_to_itself() -> None:
    twice = replace(TARGET, roles=(("upper", "line"),))
    more = (*REFERENCES[:1], Reference(TableId("old", "line"), ("above",), TableId("old", "line"), ("id",)))
    target = replace(TARGET, links=("line.orders_id = orders.id", "line.above = upper.id"), roles=twice.roles)
    plan = replace(PLAN, target=target, reaches=reaches(target, SCHEMAS, more), repeated=("line",))
    kept = record(plan, signed(), CONTENT)
    assert kept is not None
    assert restored(kept, target, SCHEMAS, COLUMNS, more) == replace(plan, kept=CONTENT.text)


def test_what_has_no_fingerprint_or_is_computed_by_spark_is_not_kept() -> None:
    assert record(PLAN, signed(), UNKNOWN) is None
    valued = replace(PLAN, target=replace(TARGET, values=(("line", "code", lambda line: line.id),)))
    assert record(valued, signed(), CONTENT) is None
    computed = replace(PLAN, reaches=(replace(PLAN.reaches[0], grain=(), name="month"),))
    assert record(computed, signed(), CONTENT) is None


def test_the_signature_changes_with_each_thing_that_a_plan_is_read_from() -> None:
    def other(*_: Any) -> Any:
        """Stands at another line."""

    found = [
        signed(),
        signed(surroundings="code, other versions"),
        signed(columns=COLUMNS[:2]),
        signed(columns=(replace(COLUMNS[0], nullable=False), *COLUMNS[1:])),
        signed(references=REFERENCES[:1]),
        signed(references=(replace(REFERENCES[0], own_equality=True), REFERENCES[1])),
        signed(schemas={**SCHEMAS, "line": schema("line", "id", "orders_id")}),
        signed(schemas={**SCHEMAS, "line": replace(SCHEMAS["line"], key=("id", "above"))}),
        signed(schemas={"orders": SCHEMAS["orders"]}),
        *(
            signed(target=replace(TARGET, **change))
            for change in (
                {"name": "other"},
                {"key": ("total",)},
                {"grain": "line.id"},
                {"grain": lambda line: line.id},
                {"grain": None},
                {"values": (("line", "code", lambda line: line.id),)},
                {"function": other},
                {"sources": ("line", "orders")},
                {"links": ("line.orders_id = orders.id",)},
                {"roles": (("upper", "line"),)},
                {"surrogates": (("order_id", "order"),)},
            )
        ),
    ]
    assert len(set(found)) == len(found)
    unread = {**SCHEMAS, "beside": schema("beside", "id")}
    assert signed(schemas=unread, references=tuple(reversed(REFERENCES))) == signed()


class Spark:
    """Counts how often it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        return self


def store(
    path: Path, monkeypatch: pytest.MonkeyPatch, contents: Sequence[Fingerprint]
) -> tuple[KeptPlans, Spark]:
    """A store whose plans have these fingerprints, one after the other."""
    given = iter(contents)
    monkeypatch.setattr(kept_plans, "fingerprint", lambda *_: next(given))
    spark = Spark()
    found = KeptPlans(path, lambda: "code", spark)
    found.begin()
    return found, spark


def find(kept: KeptPlans) -> MappingPlan | None:
    return kept.find(TARGET, SCHEMAS, COLUMNS, REFERENCES)


def test_the_next_start_takes_a_plan_over_without_spark_and_proves_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = store(tmp_path / "plans.json", monkeypatch, [CONTENT])
    assert find(first) is None
    assert first.content(PLAN) == CONTENT
    first.keep({"summary": PLAN})
    second, spark = store(tmp_path / "plans.json", monkeypatch, [CONTENT])
    plan = find(second)
    assert plan == replace(PLAN, kept=CONTENT.text)
    assert plan is not None
    assert second.content(plan) == CONTENT
    assert spark.asked == 0
    assert second.find(TARGET, SCHEMAS, COLUMNS[:2], REFERENCES) is None
    find(second)
    second.keep({"summary": plan})
    second.prove(plan)
    second.prove(plan)
    assert spark.asked == 1
    assert find(store(tmp_path / "plans.json", monkeypatch, [])[0]) is not None


def of_another_function(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[KeptPlans, MappingPlan]:
    """A start whose function isn't the one whose plan was kept, and the plan that it finds."""
    first, _ = store(path, monkeypatch, [CONTENT])
    find(first)
    first.content(PLAN)
    first.keep({"summary": PLAN})
    second, _ = store(path, monkeypatch, [Fingerprint("def", "Spark 4")])
    plan = find(second)
    assert plan is not None
    return second, plan


def test_a_function_that_changed_without_its_code_is_met_before_a_row_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, plan = of_another_function(tmp_path / "plans.json", monkeypatch)
    with pytest.raises(KeptPlanError, match="isn't the one whose plan was kept") as caught:
        second.prove(plan)
    assert not caught.value.retryable  # the batch would be mapped again, and again
    assert not (tmp_path / "plans.json").exists()
    second.begin()
    assert find(second) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"kind": "joined"', '"kind": "sideways"'),
        lambda text: text.replace('"reads"', '"read"'),
        lambda text: text.replace('"content": [', '"content": ["more", '),
        lambda text: '{"format": 1, "plans": {"summary": 3}}',
        lambda text: text.replace('"line": ["id", "orders_id"]', '"line": ["id", "above"]'),
        lambda text: text.replace('["id", "orders_id"]', '["id"]'),
        lambda text: text.replace('"columns": ["order_id", "total"]', '"columns": ["order_id", "note"]'),
        lambda text: text.replace('"repeated": []', '"repeated": ["line"]'),
        lambda text: text.replace('"kind": "joined"', '"kind": "row-wise"'),
        lambda text: text.replace('"abc"', '"abd"'),
    ],
)
def test_a_file_that_cannot_be_read_costs_an_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    path = tmp_path / "plans.json"
    first, _ = store(path, monkeypatch, [CONTENT])
    find(first)
    first.content(PLAN)
    first.keep({"summary": PLAN})
    assert find(store(path, monkeypatch, [])[0]) is not None
    whole = path.read_text()
    path.write_text(damage(whole))
    assert path.read_text() != whole
    assert find(store(path, monkeypatch, [])[0]) is None


def test_a_changed_byte_anywhere_gives_the_same_plan_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every byte is a part of the plan: a name of another target is, a letter of the format isn't."""
    path = tmp_path / "plans.json"
    first, _ = store(path, monkeypatch, [CONTENT])
    find(first)
    first.content(PLAN)
    first.keep({"summary": PLAN})
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flipped in (1, 2, 16):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flipped]) + whole[place + 1 :])
            found = find(store(path, monkeypatch, [])[0])
            assert found in (None, replace(PLAN, kept=CONTENT.text)), (place, flipped)


def test_what_was_proved_wrong_is_not_taken_again_though_it_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each attempt of a run would end with the same error, for ever."""
    second, plan = of_another_function(tmp_path / "plans.json", monkeypatch)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(KeptPlanError):
        second.prove(plan)
    assert (tmp_path / "plans.json").exists()
    second.begin()
    assert find(second) is None
    second.keep({"summary": PLAN})  # of the function as it is now, whose fingerprint nobody has asked for
    assert json.loads((tmp_path / "plans.json").read_text())["plans"] == {}


def test_a_disk_that_refuses_ends_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, _ = store(tmp_path / "missing" / "plans.json", monkeypatch, [CONTENT])
    find(kept)
    kept.content(PLAN)
    kept.keep({"summary": PLAN})
    assert not (tmp_path / "missing").exists()
