"""Every connection to a server is encrypted and verified as the settings say: all of them, not the first one only.

The servers admit nobody without TLS, so what connects at all is encrypted. A connection that forgot to verify
is one that still connects when authority or name are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrator import schema as control
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.embedded.debian import PackagesUnavailable
from migrator.errors import ConnectionFailed
from migrator.model.chunk import ChunkRequest
from migrator.model.event import MarkKind
from migrator.model.table import TableSchema
from migrator.run.steps import no_step
from migrator.wiring.gates.judge import sides
from migrator.wiring.source import source_database, source_parts
from migrator.wiring.target import peek, target_database, target_writer
from tests.integration.connections.tls_servers import (
    RIGHT_CA,
    RIGHT_HOST,
    WRONG_CA,
    WRONG_HOST,
    encrypted_binlog,
    encrypted_postgres,
)
from tests.servers import Database
from verify.readers.engines import source_reader, target_reader

pytestmark = pytest.mark.integration
KINDS = ["postgresql", "mariadb", "mysql"]
Doors = dict[str, Callable[[], object]]


@pytest.fixture(scope="module", params=KINDS)
def encrypted(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A server of each kind, with a captured table and a target table, and the control tables of both sides."""
    try:
        opened = encrypted_postgres() if request.param == "postgresql" else encrypted_binlog(request.param)
        with opened as database:
            _fill(database)
            yield database
    except PackagesUnavailable as error:
        pytest.skip(str(error))


def _fill(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (1, 'one')")
    if database.kind == "postgresql":
        database.execute("ALTER TABLE t REPLICA IDENTITY FULL")


def settings_for(
    folder: Path, database: Database, tls: str, ca: Path | None = RIGHT_CA, host: str = RIGHT_HOST
) -> Settings:
    """A project that has this server on both sides."""
    server = f"""
kind = "{database.kind}"
host = "{host}"
port = {database.port}
database = "{database.database}"
user = "{database.user}"
tls = "{tls}"
{f'tls_ca = "{ca}"' if ca else ""}
"""
    file = folder / "migration.toml"
    placement = 'placement = "watermark"\n'
    file.write_text(f'[migration]\nname = "tls"\n[source]{server}{placement}[target]{server}')
    return configuration.load(file, {})


def doors(settings: Settings, schemas: list[TableSchema]) -> Doors:
    """Everything that opens a connection of its own, by what it is for."""
    catalog, make = source_parts(settings)
    ports = make(schemas)
    writer, _ = target_writer(settings, no_step)
    request = ChunkRequest(1, schemas[0].id, None, 10)
    judged, judge_target = sides(settings)
    assert ports.watermarks is not None
    assert ports.load is not None
    marks, load = ports.watermarks, ports.load
    return {
        "source tables": lambda: catalog.tables(["t"]),
        "source preflight": lambda: catalog.preflight(["t"]),
        "log": lambda: using(ports.log_reader(), lambda log: log.start(None)),
        "chunk": lambda: using(ports.chunk_reader(), lambda chunks: chunks.read(request, schemas[0])),
        "load": lambda: using(load(), lambda meter: meter.sample()),
        "source control": lambda: control.upgrade_source(source_database(settings)),
        "watermark": lambda: using(marks(), lambda row: row.write("token", MarkKind.LOW)),
        "target control": lambda: control.upgrade_target(target_database(settings)),
        "target preflight": lambda: writer.preflight(["t"]),
        "target tables": lambda: writer.tables(["t"]),
        "target session": lambda: using(writer, lambda target: target.open(1)),
        "ledger": lambda: peek(settings),
        "judge source": lambda: source_reader(judged, "tls").snapshot(["t"], settings.file.parent),
        "judge target": lambda: target_reader(judge_target, "tls").snapshot(["t"], settings.file.parent),
    }


def using(opened: Any, call: Callable[[Any], object]) -> None:
    """Calls, and closes in any case."""
    try:
        call(opened)
    finally:
        opened.close()


@pytest.fixture
def schemas(encrypted: Database, tmp_path: Path) -> list[TableSchema]:
    """What is captured; slot and publication are there."""
    catalog, _ = source_parts(settings_for(tmp_path, encrypted, "verify-full"))
    found = catalog.tables(["t"])
    control.upgrade_source(source_database(settings_for(tmp_path, encrypted, "verify-full")))
    catalog.prepare(found)
    return found


@pytest.mark.each_value  # the test below meets every server with every setting
@pytest.mark.parametrize(
    ("tls", "ca", "host"),
    [
        ("verify-full", RIGHT_CA, RIGHT_HOST),
        ("verify-ca", RIGHT_CA, WRONG_HOST),
        ("require", None, WRONG_HOST),
        ("prefer", None, WRONG_HOST),
    ],
)
def test_all_connections_are_encrypted(
    encrypted: Database, schemas: list[TableSchema], tmp_path: Path, tls: str, ca: Path | None, host: str
) -> None:
    for opens in doors(settings_for(tmp_path, encrypted, tls, ca, host), schemas).values():
        opens()


@pytest.mark.parametrize(
    ("tls", "ca", "host"),
    [
        ("verify-full", WRONG_CA, RIGHT_HOST),
        ("verify-full", RIGHT_CA, WRONG_HOST),
        ("verify-ca", WRONG_CA, RIGHT_HOST),
        ("disable", None, RIGHT_HOST),
    ],
)
def test_no_connection_forgets_what_the_settings_ask_for(
    encrypted: Database, schemas: list[TableSchema], tmp_path: Path, tls: str, ca: Path | None, host: str
) -> None:
    for name, opens in doors(settings_for(tmp_path, encrypted, tls, ca, host), schemas).items():
        with pytest.raises(ConnectionFailed) as caught:
            opens()
        print(f"{name}: {caught.value}")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_without_tls_is_refused_where_tls_is_asked_for(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """MySQL makes itself a certificate: its driver and ours is MariaDB's, whose server has none here."""
    plain: Database = request.getfixturevalue("old_pg" if kind == "postgresql" else "old_maria")
    _fill(plain)
    catalog, _ = source_parts(settings_for(tmp_path, plain, "prefer", None))
    schemas = catalog.tables(["t"])
    for tls in ("require", "verify-full"):
        ca = None if tls == "require" else RIGHT_CA
        for name, opens in doors(settings_for(tmp_path, plain, tls, ca), schemas).items():
            with pytest.raises(ConnectionFailed) as caught:
                opens()
            assert "SSL" in str(caught.value), name
