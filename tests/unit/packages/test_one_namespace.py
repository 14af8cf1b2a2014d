"""The build puts all modules below one package, and refuses a name that would point nowhere."""

from __future__ import annotations

import base64
import hashlib

import pytest

from migrator.own_modules import PACKAGES
from tests.unit.packages.installed_tree import backend
from tests.unit.product_modules import SOURCES

ONE = backend()
WHEEL = {
    "dbmigrator/__init__.py": b"from transforms import a\n",
    "migrator/own_modules.py": b"N = 'migrator.cli'\n",
    "migrator/cli.py": b"from transforms import a\nimport os\n",
    "transforms/__init__.py": b"a = 'migrator.no_module'\n",
    "transforms/page.html": b"from migrator import cli",
    "x-1.dist-info/entry_points.txt": b"[console_scripts]\nm = migrator.cli:main\n\n[migrator.commands]\nn = o:p\n",
    "x-1.dist-info/top_level.txt": b"migrator\ntransforms\n",
    "x-1.dist-info/METADATA": b"Project-URL: Homepage, https://e.org/m\n\n[a](docs/a.md) [b](https://b.org) [c](#c)",
    "x-1.data/data/share/page.md": b"a page",
    "x-1.dist-info/RECORD": b"old",
}


def test_packages_move_and_the_rest_stays() -> None:
    found = ONE.in_one_namespace(WHEEL)
    record = found.pop("x-1.dist-info/RECORD").decode().splitlines()
    assert found == {
        "dbmigrator/__init__.py": b"from dbmigrator.transforms import a\n",
        "dbmigrator/migrator/own_modules.py": b"N = 'migrator.cli'\n",
        "dbmigrator/migrator/cli.py": b"from dbmigrator.transforms import a\nimport os\n",
        "dbmigrator/transforms/__init__.py": b"a = 'migrator.no_module'\n",
        "dbmigrator/transforms/page.html": b"from migrator import cli",
        "x-1.dist-info/entry_points.txt": (
            b"[console_scripts]\nm = dbmigrator.migrator.cli:main\n\n[migrator.commands]\nn = o:p\n\n"
        ),
        "x-1.dist-info/top_level.txt": b"dbmigrator\n",
        "x-1.dist-info/METADATA": (
            b"Project-URL: Homepage, https://e.org/m\n\n"
            b"[a](https://e.org/m/blob/main/docs/a.md) [b](https://b.org) [c](#c)"
        ),
        "x-1.data/data/share/page.md": b"a page",
    }
    for name, content in found.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert f"{name},sha256={digest},{len(content)}" in record
    assert record[-1] == "x-1.dist-info/RECORD,,"
    assert len(record) == len(found) + 1


@pytest.mark.parametrize(
    "text", ["load('migrator.cli')", "M = {'a': 'migrator.cli'}", "own2('migrator.cli')"]
)
def test_a_module_named_in_a_text_ends_the_build(text: str) -> None:
    files = {**WHEEL, "transforms/more.py": text.encode()}
    with pytest.raises(ValueError, match=r"transforms/more\.py:1: 'migrator\.cli' is a module's name"):
        ONE.in_one_namespace(files)
    ONE.in_one_namespace({**WHEEL, "transforms/more.py": b"own('migrator.cli'); python_m('migrator.cli')"})


def test_two_files_never_become_one() -> None:
    with pytest.raises(ValueError, match="two files"):
        ONE.in_one_namespace({**WHEEL, "dbmigrator/migrator/cli.py": b""})


def test_the_sources_name_no_module_in_a_text() -> None:
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in SOURCES}
    assert "migrator.worker_daemon" in modules
    loose = {
        name: list(ONE.loose_names(source, modules))
        for name, source in SOURCES.items()
        if name != "migrator/own_modules.py" and any(f'"{package}.' in source for package in PACKAGES)
    }
    assert {name: found for name, found in loose.items() if found} == {}
