"""The mapping registry and the loader of the user's mapping file; no Spark."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrator.errors import MappingError
from transforms import Mapping, load_mapping

HEAD = "from transforms import Mapping\nmapping = Mapping()\n"
TARGET = '@mapping.target("person", key="person_id")\ndef person(customer):\n    return customer\n'


def test_surrogates_are_columns_with_their_key_map() -> None:
    mapping = Mapping()
    mapping.target("t", key="id", surrogates={"id": "person", "boss": "person"})(lambda a: a)
    assert mapping["t"].surrogates == (("id", "person"), ("boss", "person"))
    for wrong in ("person", {}, ["id"], {"id": ""}):
        with pytest.raises(MappingError, match=r"surrogates|key map"):
            mapping.target("u", key="id", surrogates=wrong)(lambda a: a)  # type: ignore[arg-type]


def test_a_role_is_no_parameter() -> None:
    """Read as a table, it would be granted and missed as one."""
    with pytest.raises(MappingError, match="the role 'manager' is a table that the function reads") as caught:
        Mapping().target("t", key="id", grain="employee.id", roles={"manager": "employee"})(
            lambda employee, manager: employee
        )
    assert "leave manager out of the parameters and take employee for it" in caught.value.remedy


def test_a_target_knows_its_key_sources_and_place() -> None:
    mapping = Mapping()

    @mapping.target("line", key=["order_id", "no"])
    def line(orders: Any, product: Any) -> Any:
        return orders

    [target] = mapping.targets
    assert (target.name, target.key, target.grain, target.sources) == (
        "line",
        ("order_id", "no"),
        None,
        ("orders", "product"),
    )
    assert target.function is line
    assert "test_transforms_registry.py:" in target.where()
    assert mapping["line"] is target
    assert "line" in mapping
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.name = "other"  # type: ignore[misc]


def test_targets_keep_the_order_of_declaration() -> None:
    mapping = Mapping()
    for name in ("b", "a", "c"):
        mapping.target(name, key="id")(lambda t: t)
    assert [target.name for target in mapping] == ["b", "a", "c"]


def test_sources_can_be_tables_whose_names_are_no_python_names() -> None:
    mapping = Mapping()
    mapping.target("t", key="id", sources=["order-line", "2024"])(lambda line, year: line)
    assert mapping["t"].sources == ("order-line", "2024")


def test_a_target_declared_twice_is_refused() -> None:
    mapping = Mapping()
    mapping.target("t", key="id")(lambda a: a)
    with pytest.raises(MappingError, match="mapped twice"):
        mapping.target("t", key="id")(lambda b: b)


async def _asynchronous(a: Any) -> Any:
    return a


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda a, *rest: a,
        lambda a, **rest: a,
        lambda a, b=None: a,
        lambda a, *, b: a,
        lambda a, /: a,
        _asynchronous,
    ],
)
def test_parameters_that_are_no_source_tables_are_refused(function: Callable[..., Any]) -> None:
    mapping = Mapping()
    with pytest.raises(MappingError) as failure:
        mapping.target("t", key="id")(function)
    assert failure.value.remedy
    assert not mapping.targets


@pytest.mark.parametrize("key", ["", [], ["a", "a"], ["a", ""], 7, None])
def test_a_key_that_names_no_columns_is_refused(key: Any) -> None:
    with pytest.raises(MappingError):
        Mapping().target("t", key=key)(lambda a: a)


@pytest.mark.parametrize("sources", [["a"], ["a", "a"], ["a", "b", "c"], "a"])
def test_sources_must_fit_the_parameters(sources: Any) -> None:
    with pytest.raises(MappingError):
        Mapping().target("t", key="id", sources=sources)(lambda a, b: a)


def test_a_mapping_file_is_loaded_with_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "shared_names.py").write_text("KEY = 'person_id'\n")
    (tmp_path / "mapping.py").write_text("import shared_names\n" + HEAD + TARGET)
    path_before = list(sys.path)
    assert [t.name for t in load_mapping(tmp_path / "mapping.py")] == ["person"]
    assert sys.path == path_before


def test_each_load_runs_the_file_and_its_neighbours_afresh(tmp_path: Path) -> None:
    for folder, name in (("one", "first"), ("two", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shared_names.py").write_text(f"NAME = {name!r}\n")
        (tmp_path / folder / "mapping.py").write_text(
            "from shared_names import NAME\n" + HEAD + TARGET.replace('"person"', "NAME")
        )
    names = [
        load_mapping(tmp_path / folder / "mapping.py").targets[0].name for folder in ("one", "two", "one")
    ]
    assert names == ["first", "second", "first"]


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        (HEAD + "def broken(:\n", 3, "invalid syntax"),
        (HEAD + "import no_such_module_anywhere\n", 3, "no_such_module_anywhere"),
        (HEAD + "\n1 / 0\n", 4, "ZeroDivisionError"),
        (HEAD + "import sys\nsys.exit(3)\n", 4, "SystemExit"),
        (HEAD + '@mapping.target("t", key="id")\ndef t(a=1):\n    return a\n', 3, "a=1"),
        ("x = 1\n", None, "0 found"),
        (HEAD + TARGET + "other = Mapping()\n", None, "2 found"),
        (HEAD, None, ""),
    ],
    ids=["syntax", "import", "raises", "exits", "parameter", "none", "two", "empty"],
)
def test_every_mistake_names_file_line_cause_and_remedy(
    tmp_path: Path, text: str, line: int | None, cause: str
) -> None:
    file = tmp_path / "mapping.py"
    file.write_text(text)
    with pytest.raises(MappingError) as failure:
        load_mapping(file)
    assert failure.value.where.startswith(f"{file}:{line}" if line else str(file))
    assert cause in failure.value.cause
    assert failure.value.remedy


def test_a_mistake_in_a_neighbour_is_placed_there(tmp_path: Path) -> None:
    (tmp_path / "shared_rules.py").write_text("\n\nraise ValueError('no')\n")
    (tmp_path / "mapping.py").write_text("import shared_rules\n" + HEAD + TARGET)
    with pytest.raises(MappingError) as failure:
        load_mapping(tmp_path / "mapping.py")
    assert failure.value.where == f"{tmp_path / 'shared_rules.py'}:3"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MappingError) as failure:
        load_mapping(tmp_path / "mapping.py")
    assert str(tmp_path / "mapping.py") in failure.value.where


def test_columns_made_before_spark_runs_are_named(tmp_path: Path) -> None:
    """In a process of its own: once Spark runs, from an earlier test perhaps, the same line is harmless."""
    file = tmp_path / "mapping.py"
    file.write_text(HEAD + "from pyspark.sql import functions as F\nx = F.col('a')\n")
    program = (
        f"from pathlib import Path; from transforms import load_mapping; load_mapping(Path({str(file)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"{file}:4" in done.stderr
    assert "F.col" in done.stderr
