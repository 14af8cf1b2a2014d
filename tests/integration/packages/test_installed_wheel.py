"""The wheel beside others' modules of its names, in a folder with such files: all commands from init to repair."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.servers import Database
from tests.unit.packages.installed_tree import HOSTILE, backend, hostile, sources
from tests.unit.product_modules import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MAPPING = '''
from pyspark.sql import functions as F
from transforms import Mapping
from transforms.columns import flag
from naming import tidy

mapping = Mapping()


@mapping.target("customer", key="id")
def customer(customer):
    """With this tool's old names, a module beside it, and a function that Python workers run."""
    from transforms.columns import blank_to_null

    name = F.udf(tidy, "string")(F.col("name"))
    return customer.select("id", blank_to_null(name).alias("name"), flag("active").alias("active"))
'''
NAMING = '''
def tidy(text):
    """Runs in a worker, where it imports this tool by an old name."""
    from transforms.python_source import prose

    return prose(text.strip())
'''
OLD_ENV = "from migrator.schema.project_env import run\n\nrun()\n"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel, and a working folder."""

    programs: Path
    folder: Path

    def migrator(self, *words: str, code: int = 0) -> str:
        """What a command prints; it must end with ``code``, and import none of the others' modules."""
        done = subprocess.run(
            [self.programs / "migrator", *words],
            cwd=self.folder, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert "was imported" not in done.stdout
        assert done.returncode == code, done.stdout
        return done.stdout

    @contextmanager
    def running(self, *words: str) -> Iterator[None]:
        """A command that runs beside the block, then is told to stop and stops cleanly."""
        command = [str(self.programs / "migrator"), *words]
        beside = subprocess.Popen(command, cwd=self.folder, env=clean(), stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            beside.terminate()
            code = beside.wait(180)
        assert code == 0


def clean() -> dict[str, str]:
    """Surroundings that lead Python to nothing of this checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def pip(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *map(str, words)], env=clean(), check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a release builds it; with the setuptools that is there, if it is new enough."""
    folder = tmp_path_factory.mktemp("wheel")
    here = int(version("setuptools").partition(".")[0]) >= 77 if sys.version_info < (3, 12) else False
    pip("wheel", "--no-deps", *(["--no-build-isolation"] if here else []), "--wheel-dir", folder, ROOT)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Environment:
    """The wheel, the libraries of this process, and modules of others that raise when they are imported."""
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip("--python", place / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    packages = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    hostile(packages)
    work = tmp_path / "work"
    hostile(work)
    return Environment(place / "bin", work)


def test_the_wheel_holds_the_sources_below_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        found = {name: held.read(name) for name in held.namelist()}
    tops = {name.partition("/")[0] for name in found}
    assert {top.partition("-")[0] for top in tops} == {"dbmigrator"}
    wanted = backend().in_one_namespace(sources())
    modules = {name: content for name, content in wanted.items() if name.endswith(".py")}
    outside = {name for name in modules if "/tests/" in name}  # of the flights' project: not for installation
    assert {name for name in modules if found.get(name) != modules[name]} == outside


def test_from_init_to_repair(environment: Environment, old_pg: Database, new_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, active smallint NOT NULL)",
        "ALTER TABLE customer REPLICA IDENTITY FULL",
        "INSERT INTO customer SELECT n, ' name ' || n, n % 2 FROM generate_series(1, 500) n",
    )
    new_pg.execute("CREATE TABLE customer (id bigint PRIMARY KEY, name text, active boolean NOT NULL)")
    url = "postgresql://{0.user}@{0.host}:{0.port}/{0.database}".format
    run = environment.migrator
    run("init", "shop", "--source-url", url(old_pg), "--target-url", url(new_pg))
    shop = environment.folder / "shop"
    assert "from dbmigrator import Mapping" in (shop / "mapping.py").read_text()
    inside = Environment(environment.programs, shop)
    for name in ("json", *HOSTILE[:4]):
        (shop / f"{name}.py").write_text(f"raise RuntimeError('{name}.py of the project was imported')\n")
    inside.migrator("schema", "upgrade")
    inside.migrator("check")

    (shop / "mapping.py").write_text(MAPPING)
    said = inside.migrator("check", code=2)
    assert "transforms.py has the name of an installed module" in said
    for name in HOSTILE[:4]:
        (shop / f"{name}.py").unlink()
    (shop / "naming.py").write_text(NAMING)
    (shop / "alembic" / "env.py").write_text(OLD_ENV)
    (shop / "alembic" / "versions" / "0002_more.py").write_text(
        'from alembic import op\nrevision = "0002"\ndown_revision = "0001"\n\n\n'
        'def upgrade():\n    op.execute("ALTER TABLE customer ADD more int")\n'
    )
    assert "0002" in inside.migrator("schema", "upgrade")
    inside.migrator("check")
    assert "name 7" in inside.migrator("try", "customer", "--key", "7")
    inside.migrator("run", "--plain", "--until", "caught-up")
    assert new_pg.query("SELECT count(*), count(nullif(active, false)) FROM customer") == [(500, 250)]
    inside.migrator("verify")
    new_pg.execute("UPDATE customer SET name = 'lost' WHERE id = 7")
    inside.migrator("verify", code=1)
    with inside.running("run", "--plain"):
        inside.migrator("repair", "--apply")
    inside.migrator("verify")
    assert new_pg.query("SELECT name FROM customer WHERE id = 7") == [("name 7",)]
