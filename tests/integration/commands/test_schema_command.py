"""``migrator schema``: the revisions, run by the owner of the tables; every error with a way out that works."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.errors import ConfigError, ConnectionFailed, MigratorError, TargetError
from migrator.schema import upgrade_target
from migrator.wiring.target import target_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration

TEMPLATE = Path(__file__).parents[3] / "migrator/cli/init/template/env.py.txt"
FIRST = "op.execute('CREATE TABLE first (id int PRIMARY KEY)')"
SECOND = "op.execute('CREATE TABLE second (id int PRIMARY KEY)')"


@pytest.fixture(params=["new_pg", "new_maria", "new_mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def owner(new: Database) -> Iterator[str]:
    """A login with all rights on the database, and the password ``secret``."""
    name = f"owner_{new.database}"[:30]
    if new.kind == "postgresql":
        new.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'", f"GRANT CREATE ON SCHEMA public TO {name}")
        yield name
        new.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")
    else:
        new.execute(
            f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'", f"GRANT ALL ON `{new.database}`.* TO {name}@'%'"
        )
        yield name
        new.execute(f"DROP USER {name}@'%'")


@pytest.fixture
def poor(new: Database) -> Iterator[str]:
    """A login that may read, and nothing else."""
    name = f"poor_{new.database}"[:30]
    if new.kind == "postgresql":
        new.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
        yield name
        new.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")
    else:
        new.execute(
            f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'",
            f"GRANT SELECT ON `{new.database}`.* TO {name}@'%'",
        )
        yield name
        new.execute(f"DROP USER {name}@'%'")


def project(folder: Path, new: Database, user: str = "", more: str = "") -> Path:
    """A project whose revisions are ``0001`` and ``0002``; its source is nobody's."""
    (folder / "alembic" / "versions").mkdir(parents=True)
    (folder / "alembic" / "env.py").write_text(TEMPLATE.read_text())
    revision(folder, "0001", None, FIRST)
    revision(folder, "0002", "0001", SECOND)
    config = folder / "migration.toml"
    config.write_text(
        f"""[migration]
name = "x"
[source]
kind = "mariadb"
host = "127.0.0.1"
port = 1
database = "old"
user = "u"
[target]
kind = "{new.kind}"
host = "{new.host}"
port = {new.port}
database = "{new.database}"
user = "{user or new.user}"
{more}
"""
    )
    return config


def revision(folder: Path, name: str, after: str | None, body: str) -> Path:
    file = folder / "alembic" / "versions" / f"{name}.py"
    file.write_text(
        f'"""Step {name}."""\nfrom alembic import op\nrevision, down_revision = {name!r}, {after!r}\n'
        f"def upgrade():\n    {body}\ndef downgrade():\n    pass\n"
    )
    return file


def ran(config: Path, *arguments: str) -> str:
    done = CliRunner().invoke(cli, ["schema", *arguments, "--config", str(config)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(config: Path, *arguments: str, kind: type[MigratorError] = TargetError) -> MigratorError:
    with pytest.raises(kind) as failure:
        cli.main(["schema", "upgrade", *arguments, "--config", str(config)], standalone_mode=False)
    assert "secret" not in str(failure.value)
    assert failure.value.remedy
    return failure.value


def tables(new: Database) -> set[str]:
    rows = new.query(
        "SELECT table_name FROM information_schema.tables WHERE table_name IN ('first', 'second')"
    )
    return {str(name).lower() for (name,) in rows if True}


def there(new: Database, table: str) -> bool:
    schema = "current_schema()" if new.kind == "postgresql" else "DATABASE()"
    [(count,)] = new.query(
        f"SELECT count(*) FROM information_schema.tables WHERE table_schema = {schema} AND table_name = '{table}'"
    )
    return bool(count)


def test_the_owner_runs_them_and_the_migrations_login_may_not(
    tmp_path: Path, new: Database, owner: str, poor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("secret\n")
    config = project(tmp_path, new, poor, 'password_file = "password"')
    said = refused(config)
    assert "[target] owner" in said.remedy
    assert not there(new, "first")
    config.write_text(f'{config.read_text()}owner = "{owner}"\nowner_password_env = "OWNER"\n')
    assert "no variable OWNER" in str(refused(config, kind=ConfigError))
    configuration.load(config)  # who runs the migration needs no such variable
    if new.kind != "postgresql":  # the tests' PostgreSQL trusts whoever comes
        monkeypatch.setenv("OWNER", "wrong")
        assert "refuses the login" in refused(config, kind=ConnectionFailed).what
    monkeypatch.setenv("OWNER", "secret")
    assert ran(config, "upgrade", "0001").splitlines()[0] == "ran      0001  Step 0001."
    assert there(new, "first")
    assert not there(new, "second")
    if new.kind == "postgresql":
        new.execute(f"GRANT SELECT ON alembic_version TO {poor}")
    assert "to run   0002  Step 0002." in ran(config, "current")
    assert "at       0001\n" in ran(config, "current")
    assert f"what {poor} needs on new tables" in ran(config, "upgrade")
    assert there(new, "second")
    assert "nothing to run" in ran(config, "upgrade")
    assert ran(config, "history") == "ran      0001  Step 0001.\nran      0002  Step 0002.\n"


def test_a_revision_that_fails_says_what_stays_and_goes_on_once_mended(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    body = f"{SECOND}\n    op.execute('CREATE TABLE first (id int)')"
    file = revision(tmp_path, "0002", "0001", body)
    said = refused(config)
    assert said.what == "revision 0002 can't be run"
    assert said.where == f"{file}:6"
    assert "already exists" in said.cause
    if new.kind == "postgresql":
        assert "the target stays at revision none" in said.cause
        assert not there(new, "first")
    else:
        assert "the target is at revision 0001, and what 0002 did before stays" in said.cause
        assert "undo what stays" in said.remedy
        assert there(new, "second")
        new.execute("DROP TABLE second")
    revision(tmp_path, "0002", "0001", SECOND)
    assert "0002" in ran(config, "upgrade")
    assert "nothing to run" in ran(config, "upgrade")


def test_a_fault_of_python_takes_nothing_away_from_what_ran_before(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    revision(tmp_path, "0002", "0001", "nobody_knows_this()")
    said = refused(config)
    assert "NameError" in said.cause
    assert there(new, "first") == (new.kind != "postgresql")
    at = "none" if new.kind == "postgresql" else "0001"
    assert f"at       {at}\n" in ran(config, "current")
    revision(tmp_path, "0002", "0001", SECOND)
    ran(config, "upgrade")
    assert there(new, "second")


def test_a_table_that_somebody_holds_isnt_waited_for_without_end(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    ran(config, "upgrade", "0001")
    revision(tmp_path, "0002", "0001", "op.execute('ALTER TABLE first ADD more int')")
    holder = new.connect(autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM first")
    said = refused(config, "--lock-timeout", "1")
    assert "end the transaction that holds the table" in said.remedy
    holder.rollback()
    holder.close()
    assert "0002" in ran(config, "upgrade", "--lock-timeout", "1")


def test_two_at_once_are_told_apart(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    nested = f"""from tests.integration.commands import test_schema_command as here
    from pathlib import Path
    here.seen = here.refused(Path({str(config)!r}))
    {SECOND}"""
    revision(tmp_path, "0002", "0001", nested)
    ran(config, "upgrade")
    assert globals()["seen"].what == "somebody else is running the revisions of this target"
    await_true(lambda: "nothing to run" in ran(config, "upgrade"), "the other's lock to be gone")


def test_the_sql_that_is_shown_does_the_same(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    ran(config, "upgrade", "0001")
    shown = ran(config, "upgrade", "--sql")
    assert not there(new, "second")
    without_comments = re.sub(r"--.*", "", shown)
    new.execute(*(one for one in without_comments.split(";") if one.strip()))
    assert there(new, "second")
    assert "nothing to run" in ran(config, "upgrade")
    assert ran(config, "upgrade", "--sql") == ""


def test_what_cant_be_run_is_refused_by_name(tmp_path: Path, new_pg: Database) -> None:
    config = project(tmp_path, new_pg)
    assert "there is no Alembic revision 'nonsense'" in refused(config, "nonsense").what
    beside = revision(tmp_path, "0003", "0001", "pass")
    said = refused(config)
    assert said.what == "the Alembic revisions have 2 heads"
    assert "0002, 0003" in said.cause
    assert "alembic merge -m joined heads" in said.remedy
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = alembic\n")
    (tmp_path / "alembic" / "script.py.mako").write_text((TEMPLATE.parent / "script.py.mako.txt").read_text())
    from alembic.config import main

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        main(["merge", "-m", "joined", "heads"])
    for merged in (tmp_path / "alembic" / "versions").glob("*_joined.py"):
        ran(config, "upgrade")
        merged.unlink()
    assert "which this project doesn't have" in refused(config, "0002").what
    beside.write_text("revision = (\n")
    assert refused(config).where == f"{beside}:1"
    beside.write_text("revision, down_revision = '0003', '0002'\nnobody_knows_this()\n")
    assert "nobody_knows_this" in refused(config).cause
    config.write_text(config.read_text().replace('name = "x"', 'name = "x"\nalembic = "nowhere"'))
    assert "[migration] alembic" in refused(config).remedy


def test_no_revision_and_no_login_are_named(tmp_path: Path, new_pg: Database) -> None:
    config = project(tmp_path, new_pg, more='owner_password_env = "OWNER"')
    assert "set owner" in str(refused(config, kind=ConfigError))
    config.write_text(config.read_text().replace("owner_password_env", "# "))
    for file in (tmp_path / "alembic" / "versions").glob("*.py"):
        file.unlink()
    assert "there is no Alembic revision to run" in refused(config).what


def test_names_without_a_schema_go_where_the_project_says(tmp_path: Path, new_pg: Database) -> None:
    config = project(tmp_path, new_pg, more='schema = "my App"')
    new_pg.execute('CREATE SCHEMA "my App"')
    ran(config, "upgrade", "0001")
    assert new_pg.query("""SELECT to_regclass('"my App".first') IS NOT NULL""") == [(True,)]
    assert new_pg.query("""SELECT to_regclass('"my App".alembic_version') IS NOT NULL""") == [(True,)]
    assert 'SET search_path TO "my App", public' in ran(config, "upgrade", "--sql")
    ran(config, "upgrade")
    assert new_pg.query("""SELECT to_regclass('"my App".second') IS NOT NULL""") == [(True,)]
    assert "nothing to run" in ran(config, "upgrade")


def test_revisions_that_ran_elsewhere_before_go_on_there(tmp_path: Path, new_pg: Database) -> None:
    config = project(tmp_path, new_pg)
    ran(config, "upgrade", "0001")
    new_pg.execute("CREATE SCHEMA app")
    config.write_text(config.read_text() + 'schema = "app"\n')
    assert "0002" in ran(config, "upgrade")
    assert new_pg.query("SELECT to_regclass('public.second') IS NOT NULL") == [(True,)]


def test_the_tools_own_revisions_stand_apart(tmp_path: Path, new: Database) -> None:
    config = project(tmp_path, new)
    upgrade_target(target_database(configuration.load(config)))
    assert "at       none" in ran(config, "current")
    ran(config, "upgrade")
    upgrade_target(target_database(configuration.load(config)))
    assert "at       0002" in ran(config, "current")
    assert new.query("SELECT version_num FROM alembic_version") == [("0002",)]


def test_as_json_all_say_the_same_and_what_revisions_print_goes_elsewhere(
    tmp_path: Path, new: Database
) -> None:
    config = project(tmp_path, new)
    revision(tmp_path, "0001", None, f"print('their own words')\n    {FIRST}")

    def spoken(*arguments: str) -> dict[str, object]:
        called = ["schema", *arguments, "--json", "--config", str(config)]
        done = CliRunner().invoke(cli, called, catch_exceptions=False)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    steps = [{"name": name, "text": f"Step {name}."} for name in ("0001", "0002")]
    none = {"format": 1, "migration": "x", "at": [], "heads": ["0002"]}
    assert spoken("current") == none | {"revisions": [one | {"ran": False} for one in steps]}
    sql = spoken("upgrade", "--sql")
    assert (sql["ran"], "CREATE TABLE first" in str(sql["sql"])) == ([], True)
    assert not there(new, "first")
    assert spoken("upgrade") == {"format": 1, "migration": "x", "ran": steps, "sql": None}
    assert there(new, "second")
    assert spoken("upgrade")["ran"] == []
    assert spoken("history") == none | {"at": ["0002"], "revisions": [one | {"ran": True} for one in steps]}
