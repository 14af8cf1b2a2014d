"""Modules of a user's project: they come last, and a file that stands in another's place is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrator.errors import MappingError
from transforms.load import load_mapping

HEAD = "from dbmigrator import Mapping\nmapping = Mapping()\n"
TABLE = '\n@mapping.target("t", key="id")\ndef t(s):\n    return s\n'


def loaded(folder: Path, text: str, **modules: str) -> object:
    """What ``FOUND`` is in a mapping with modules beside it."""
    for name, content in modules.items():
        (folder / f"{name}.py").write_text(content)
    (folder / "mapping.py").write_text(HEAD + text + TABLE)
    mapping = load_mapping(folder / "mapping.py")
    return vars(sys.modules[mapping["t"].function.__module__])["FOUND"]


def test_modules_and_packages_beside_it_are_found_wherever_python_was_started(tmp_path: Path) -> None:
    (tmp_path / "beside_pack").mkdir()
    (tmp_path / "beside_pack" / "__init__.py").write_text("")
    (tmp_path / "beside_pack" / "deep.py").write_text("from beside_it import ONE\nTWO = ONE + 1\n")
    path = list(sys.path)
    found = loaded(tmp_path, "from beside_pack.deep import TWO\nFOUND = TWO\n", beside_it="ONE = 1\n")
    assert found == 2
    assert sys.path == path


def test_a_file_that_nobody_imports_may_have_any_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, "FOUND = 1\n", json="raise RuntimeError", verify="raise RuntimeError") == 1


@pytest.mark.parametrize("name", ["json", "click", "math", "transforms", "this"])
def test_a_file_with_an_installed_modules_name_is_refused_with_both(tmp_path: Path, name: str) -> None:
    with pytest.raises(MappingError) as caught:
        loaded(tmp_path, f"import {name}\nFOUND = 1\n", **{name: "MINE = 1\n"})
    assert caught.value.where == f"{tmp_path / 'mapping.py'}:3"
    assert str(tmp_path / f"{name}.py") in str(caught.value.cause)
    assert "rename" in caught.value.remedy


def test_so_is_one_that_a_module_beside_it_imports(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"json\.py has the name of an installed module"):
        loaded(tmp_path, "import beside_it\nFOUND = 1\n", beside_it="import json\n", json="")


def test_an_installed_copy_of_the_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    for folder in (site, project):
        folder.mkdir()
    (site / "copied_codes.py").write_text("CODE = 7\n")
    monkeypatch.syspath_prepend(str(site))
    text = "from copied_codes import CODE\nFOUND = CODE\n"
    assert loaded(project, text, copied_codes="CODE = 7\n") == 7
    with pytest.raises(MappingError, match=r"copied_codes\.py"):
        loaded(project, text, copied_codes="CODE = 8\n")


def test_the_working_folder_comes_last_even_if_it_was_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "colorsys.py").write_text("MINE = 1\n")
    sys.modules.pop("colorsys", None)
    with pytest.raises(MappingError, match=r"colorsys\.py"):
        loaded(tmp_path, "import colorsys\nFOUND = colorsys.MINE\n")


def test_a_modules_old_compiled_file_is_not_read(tmp_path: Path) -> None:
    assert loaded(tmp_path, "from beside_it import X\nFOUND = X\n", beside_it="X = 1\n") == 1
    assert loaded(tmp_path, "from beside_it import X\nFOUND = X\n", beside_it="X = 2\n") == 2
    assert not list(tmp_path.rglob("*.pyc"))
