"""The tool under its one name, beside modules and in folders with files that have its old names, without servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.packages.installed_tree import Installed, hostile, installed

OLD = """
from transforms import Mapping
from transforms.columns import blank_to_null
import transforms.testing
import beside

mapping = Mapping()

@mapping.target("person", key="person_id")
def person(customer):
    from transforms.columns import flag
    return customer.select("person_id", flag("active"), blank_to_null("name"))
"""
LOAD = """
import sys
from pathlib import Path
from dbmigrator import load_mapping
mapping = load_mapping(Path("mapping.py"))
function = mapping["person"].function
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("migrator", "transforms", "verify")))
print(function.__globals__["blank_to_null"].__module__, function.__code__.co_names)
print(type(mapping).__module__, function.__globals__["transforms"].testing.__spec__.name)
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory.mktemp("tool"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "mapping.py").write_text(OLD)
    (tmp_path / "beside.py").write_text("from transforms.gaps import gap\n")
    return tmp_path


@pytest.mark.parametrize("words", [["-m", "dbmigrator"], ["-P", "-m", "dbmigrator.migrator"]])
def test_commands_run_in_a_folder_of_hostile_files(tool: Installed, tmp_path: Path, words: list[str]) -> None:
    hostile(tmp_path)
    for name in ("json", "click", "yaml", "pyspark"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('a file of the folder was imported')\n")
    for command in (["--version"], ["--help"], ["init", "shop"]):
        done = tool.python(*words, *command, folder=tmp_path)
        said = [line for line in done.stderr.splitlines() if not line.endswith(" init: starting")]
        assert (done.returncode, said) == (0, []), done.stdout
    assert "from dbmigrator import Mapping" in (tmp_path / "shop" / "mapping.py").read_text()
    check = tool.python(*words, "check", "--config", "shop/migration.toml", folder=tmp_path)
    assert check.returncode == 2
    assert "can't be reached" in check.stdout + check.stderr, check.stderr


def test_a_mapping_with_the_old_names_means_this_tool(tool: Installed, project: Path) -> None:
    done = tool.python("-c", LOAD, folder=project)
    assert done.returncode == 0, done.stderr
    left, names, kinds = done.stdout.splitlines()
    assert left == "[]", "the old names are there only while it is loaded"
    assert names.startswith("dbmigrator.transforms.columns ('dbmigrator.transforms.columns'")
    assert kinds == "dbmigrator.transforms.registry dbmigrator.transforms.testing"


def test_a_file_in_the_place_of_an_old_name_is_named(tool: Installed, project: Path) -> None:
    (project / "transforms.py").write_text("CLEAN = 1\n")
    done = tool.python("-c", LOAD.replace('"mapping.py"', f'"{project}/mapping.py"'), folder=project)
    assert "transforms.py has the name of an installed module" in done.stderr, (
        "the hostile package comes first"
    )
    alone = Installed(tool.site, tool.site)
    done = alone.python("-c", LOAD, folder=project)
    assert f"`transforms` means {project / 'transforms.py'} here" in done.stderr
    mine = OLD.split("import beside")[1].replace(
        "from transforms.columns import flag", "from transforms import CLEAN"
    )
    (project / "mapping.py").write_text(
        "from dbmigrator import Mapping\nfrom transforms import CLEAN\n" + mine
    )
    done = alone.python("-c", "from dbmigrator import load_mapping; from pathlib import Path\n"
                        "load_mapping(Path('mapping.py'))", folder=project)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_name_that_this_tool_has_not_means_anothers_module(tool: Installed, project: Path) -> None:
    (project / "mapping.py").write_text("from transforms import no_such_name\n")
    done = tool.python("-c", LOAD, folder=project)
    assert f"the transforms of {tool.others} was imported" in done.stderr


def test_executors_get_the_same_namespace(tool: Installed, project: Path) -> None:
    program = "from dbmigrator.transforms.on_spark.shipping import own_code; print(*own_code(), sep='\\n')"
    done = tool.python("-c", program, folder=project)
    names = done.stdout.split()
    assert "dbmigrator/transforms/columns.py" in names, done.stderr
    assert "dbmigrator/columns.py" in names
    assert "dbmigrator/migrator/worker_daemon.py" in names
    assert {name.partition("/")[0] for name in names} == {"dbmigrator"}
    (project / "broken.py").write_text("from transforms import\n")
    program = (
        "from dbmigrator.transforms.on_spark.shipping import mapping_modules; from pathlib import Path\n"
        "found = mapping_modules(Path('mapping.py'), ())\n"
        "print(found['beside.py'].decode(), found['broken.py'].decode())"
    )
    done = tool.python("-c", program, folder=project)
    assert done.stdout.split("\n")[0] == "from dbmigrator.transforms.gaps import gap", done.stderr
    assert "from transforms import" in done.stdout
