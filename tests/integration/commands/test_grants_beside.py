"""What a run makes beside its tables, mirror and key maps: `grants` prints it, `check` asks for each right."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from migrator.adapters.targets.mysql.checks import grants as mysql_grants
from migrator.adapters.targets.mysql.checks.preflight import preflight as mysql_preflight
from migrator.adapters.targets.mysql.key_maps import TABLES as KEY_MAPS
from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.mirror.tables import RIGHTS
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.postgres.checks.grants import target_grants as postgres_grants
from migrator.adapters.targets.postgres.checks.preflight import preflight as postgres_preflight
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.model.finding import Finding
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.server import Server
from tests.servers import Database, server_of

pytestmark = pytest.mark.integration
BOTH = Beside(mirror=True, key_maps=True)
SCHEMA = (
    "CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)",
    "CREATE TABLE item (id int PRIMARY KEY, word varchar(9))",
)
MAPS = {
    "migrator_key_map": "migration varchar(31), name varchar(64), old_key varbinary(9), new_key bigint",
    "migrator_key_map_counter": "migration varchar(31), name varchar(64), following bigint",
}


@pytest.fixture(params=["new_maria", "new_mysql"])
def new(request: pytest.FixtureRequest) -> Iterator[tuple[Database, MysqlTarget]]:
    """A target whose login has exactly the printed rights."""
    database: Database = request.getfixturevalue(request.param)
    database.execute(*SCHEMA)
    settings = MysqlTarget(
        Server(
            host=database.host,
            port=database.port,
            database=database.database,
            user=f"beside_{database.database[-8:]}",
            password="beside",
            kind=database.kind,
        ),
        migration="m",
    )
    script = mysql_grants.target_grants(settings, ["item"], joined=True, numbered=True)
    database.execute(script.make.rstrip(";").replace("'...'", "'beside'"), *script.needed)
    yield database, settings
    database.execute(f"DROP USER {script.account}")


def fatal(found: list[Finding]) -> list[tuple[str, str]]:
    return [(each.check, each.remedy) for each in found if each.fatal]


def follow(database: Database, remedy: str) -> None:
    """To the letter."""
    database.execute(*remedy.split("; "))


@pytest.mark.parametrize("there", [False, True], ids=["not made", "made"])
def test_each_right_on_mirror_and_key_maps_is_missed(new: tuple[Database, MysqlTarget], there: bool) -> None:
    database, settings = new
    if there:
        database.execute(*(f"CREATE TABLE {name} ({columns})" for name, columns in MAPS.items()))
    else:
        database.execute(f"DROP DATABASE `{mirror(settings)}`")
    before = everything(database, settings)

    def asked() -> list[tuple[str, str]]:
        found = fatal(mysql_preflight(settings, ["item"], BOTH))
        assert everything(database, settings) == before, "preflight changed something"
        return found

    assert asked() == []
    user = f"'{settings.server.user}'@'%'"
    cases = [("mirror", right, f"`{mirror(settings)}`.*") for right in RIGHTS.split(", ")]
    own = settings.server.database
    rights = ("SELECT", "INSERT", "UPDATE", "CREATE")
    cases += [("key_maps", right, f"`{own}`.`{name}`") for name in KEY_MAPS for right in rights]
    for check, right, place in cases:
        database.execute(f"REVOKE {right} ON {place} FROM {user}")
        ((told, remedy),) = asked()
        assert told == check
        assert fatal(mysql_preflight(settings, ["item"], NOTHING_BESIDE)) == [], "nobody else needs it"
        assert re.search(rf"GRANT [A-Z, ]*{right}", remedy)
        follow(database, remedy)
    for check, place in (("mirror", f"`{mirror(settings)}`.*"), ("key_maps", f"`{own}`.`{KEY_MAPS[0]}`")):
        database.execute(f"REVOKE ALL PRIVILEGES ON {place} FROM {user}")
        ((told, remedy),) = fatal(mysql_preflight(settings, ["item"], BOTH))
        assert told == check
        follow(database, remedy)
        before = everything(database, settings)
        assert asked() == []


def mirror(settings: MysqlTarget) -> str:
    return mirror_database(settings.server.database)


def everything(database: Database, settings: MysqlTarget) -> list[tuple[object, ...]]:
    """All tables and columns of both databases."""
    return database.query(
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"
        f" WHERE table_schema IN ('{settings.server.database}', '{mirror(settings)}') ORDER BY 1, 2, 3"
    )


@pytest.mark.parametrize("there", [False, True], ids=["not made", "made"])
def test_the_mirrors_schema_is_missed(new_pg: Database, there: bool) -> None:
    new_pg.execute(*SCHEMA)
    user = f"beside_{new_pg.database[-8:]}"
    settings = PostgresTarget(
        server_of(new_pg, user=user, password="beside"),
        migration="m",
    )
    script = postgres_grants(settings, ["item"], joined=True)
    new_pg.execute(script.make.rstrip(";").replace("'...'", "'beside'"), *script.needed)
    assert fatal(postgres_preflight(settings, ["item"], BOTH)) == []
    owner = new_pg.user
    if there:
        new_pg.execute(f'ALTER SCHEMA migrator_mirror OWNER TO "{owner}"')
    else:
        new_pg.execute("DROP SCHEMA migrator_mirror")
    ((told, remedy),) = fatal(postgres_preflight(settings, ["item"], BOTH))
    assert told == "mirror"
    assert fatal(postgres_preflight(settings, ["item"], NOTHING_BESIDE)) == []
    new_pg.execute(remedy.removeprefix("as the database's owner: "))
    assert fatal(postgres_preflight(settings, ["item"], BOTH)) == []
    new_pg.execute(f"DROP OWNED BY {script.account} CASCADE", f"DROP ROLE {script.account}")
