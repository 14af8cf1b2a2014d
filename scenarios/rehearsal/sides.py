"""The throw-away servers of a rehearsal: schemas from files or revisions, logins from printed grants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psycopg
import pymysql
from psycopg import sql

from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.connections.mysql.sql import account
from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.server import EmbeddedServer
from migrator.errors import ConfigError
from migrator.model.cutover.fence import FenceKind
from migrator.model.grants import Grants
from migrator.schema.sql_text import Script, Statement, script
from migrator.wiring import parts as wiring
from scenarios.database import Connection, Cursor, Database
from scenarios.faults.session import execute, query
from scenarios.rehearsal.copied import SUPERUSERS, Wanted, password_of
from scenarios.rehearsal.tables import Table

APPLICATION = "rehearsal_application"
_BINLOG = {"log-bin-trust-function-creators": "ON"}


def started(stack: ExitStack, folder: Path, project: Wanted, side: str) -> Database:
    """A server of the side's engine with an empty database of the project's name; the address is its administrator's.

    Raises ``MigratorError`` for an engine that can't be had on this machine.
    """
    return served(stack, folder, project, side, {})[0]


def served(
    stack: ExitStack, folder: Path, project: Wanted, side: str, settings: Mapping[str, str]
) -> tuple[Database, EmbeddedServer]:
    """Starts a server as ``started`` does; returns it as well. ``settings``: of the server, over the defaults."""
    kind, name = project.kind(side), project.text("source" if side == "old" else "target", "database")
    if kind == "postgresql":
        postgres = stack.enter_context(EmbeddedPostgres(folder / side, settings=settings))
        if name != "postgres":
            postgres.create_database(name)
        schema = project.text("source" if side == "old" else "target", "schema", "public")
        found = Database("postgresql", postgres.host, postgres.port, name, postgres.superuser, "", schema)
        execute(found, [f"CREATE SCHEMA IF NOT EXISTS {_quoted(kind, schema)}"])
        return found, postgres
    embedded = EmbeddedMariaDB if kind == "mariadb" else EmbeddedMySQL
    server = stack.enter_context(embedded(folder / side, settings={**_BINLOG, **settings}))
    server.create_database(name)
    engine: Literal["mariadb", "mysql"] = "mariadb" if kind == "mariadb" else "mysql"
    return Database(engine, server.host, server.port, name, server.superuser), server


def read(file: Path, database: Database) -> Script:
    """The statements of a SQL file. Raises ``ConfigError`` for one that can't be read."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = (
            error.strerror
            if isinstance(error, OSError)
            else "it is no text: a dump in a format of pg_dump's own"
        )
        raise ConfigError(
            "the SQL file can't be read",
            where=str(file),
            cause=str(why),
            remedy="give a dump as plain SQL (`pg_dump -s`, `mysqldump --no-data`), or correct the path",
        ) from error
    return script(text, database.kind, str(file))


def loaded(database: Database, found: Script, file: Path) -> None:
    """Runs a file's statements. Raises ``ConfigError`` naming file, line and statement that the server refuses."""
    if database.kind == "postgresql":
        for owner in found.owners():
            _role(database, owner, login=False)
    connection = database.connect(autocommit=True)
    try:
        cursor = connection.cursor()
        if database.kind != "postgresql":  # as the clients that dumps are written for
            cursor.execute("SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'ANSI_QUOTES', '')")
        for one in found.statements:
            _run(connection, cursor, one, database.kind, file)
    finally:
        connection.close()


def _run(connection: Connection, cursor: Cursor, one: Statement, kind: str, file: Path) -> None:
    try:
        if one.rows is not None and isinstance(connection, psycopg.Connection):
            with connection.cursor().copy(one.text) as copy:
                copy.write(one.rows)
        else:
            cursor.execute(one.text)
    except (psycopg.Error, pymysql.err.MySQLError) as error:
        if (
            kind == "postgresql"
            and "already exists" in str(error)
            and one.text.upper().startswith("CREATE SCHEMA")
        ):
            return
        if getattr(error, "args", (0,))[0] == 1065:  # a comment for other versions: nothing is to be run
            return
        raise ConfigError(
            "the server refuses a statement of the SQL file",
            where=f"{file}, line {one.line}: {' '.join(one.text.split())[:160]}",
            cause=str(error).strip(),
            remedy="correct the statement, or take it out if the migration doesn't need it, then rehearse again",
        ) from error


def make_logins(project: Wanted, sides: dict[str, Database]) -> None:
    """Makes the logins that the settings name, without any right."""
    for side, names in project.logins.items():
        for name in names:
            _role(sides[side], name, login=True)


def grant_printed(settings: Settings, sides: dict[str, Database], *, both_ways: bool) -> dict[str, list[str]]:
    """Gives the logins what ``migrator grants --print`` has; returns the scripts by side."""
    scripts: dict[str, list[Grants]] = {"old": [], "new": []}
    for one in (settings, way_back(settings)) if both_ways else (settings,):
        source, target = wiring.grants(one)
        scripts["new" if one.reversed else "old"].append(source)
        scripts["old" if one.reversed else "new"].append(target)
    users = {"old": settings.source.user, "new": settings.target.user}
    for side, found in scripts.items():
        if users[side] == SUPERUSERS[sides[side].kind]:
            continue
        if sides[side].kind == "postgresql":  # it would make up for a right that isn't printed
            name = _quoted("postgresql", sides[side].database)
            public = ["REVOKE ALL ON SCHEMA public FROM PUBLIC", f"REVOKE ALL ON DATABASE {name} FROM PUBLIC"]
            execute(sides[side], public)
        for grants in found:
            execute(sides[side], grants.needed)
            for statement, _ in grants.perhaps:
                if statement.startswith("SELECT"):  # it prints further statements
                    execute(sides[side], [str(row[0]).rstrip(";") for row in query(sides[side], statement)])
    return {side: [one.text() for one in found] for side, found in scripts.items()}


def let_fence(
    settings: Settings, sides: dict[str, Database], tables: Mapping[str, Collection[str]]
) -> dict[str, list[str]]:
    """Gives whoever raises the fences what that needs beside the printed grants; returns the statements by side."""
    found: dict[str, list[str]] = {"old": [], "new": []}
    assert settings.cutover is not None
    writers = {"old": way_back(settings).target.user, "new": settings.target.user}
    for side, choice in (("old", settings.cutover.old), ("new", settings.cutover.new)):
        database, login = sides[side], choice.fencer.user
        if login == SUPERUSERS[database.kind]:
            continue
        if database.kind == "postgresql":
            role, schema = _quoted("postgresql", login), _quoted("postgresql", database.schema)
            owned = [f"{schema}.{_quoted('postgresql', table)}" for table in sorted(tables[side])]
            found[side] = [f"ALTER TABLE {table} OWNER TO {role}" for table in owned]
            found[side].append(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
            found[side].append(f"GRANT pg_read_all_stats TO {role}")  # to see when others' transactions began
            if login != writers[side]:  # its notes are in that one's tables
                found[side].append(f"GRANT {_quoted('postgresql', writers[side])} TO {role}")
        else:
            found[side] = to_fence(database, side, choice.kind, account(login))
        execute(database, found[side])
    return found


def to_fence(database: Database, side: str, kind: str, login: str) -> list[str]:
    """The rights of whoever raises a fence on MySQL or MariaDB: to see accounts, sessions and transactions, to keep
    its notes, and to stop writers."""
    mysql, tables = database.kind == "mysql", f"{_quoted('mysql', database.database)}.*"
    # A fence keeps its notes where the tool's other tables of that side are.
    notes = "`migrator`.*" if side == "old" else tables
    found = [
        f"GRANT SELECT ON `mysql`.* TO {login}",
        f"GRANT PROCESS, {'XA_RECOVER_ADMIN' if mysql else 'SLAVE MONITOR'} ON *.* TO {login}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON {notes} TO {login}",
    ]
    if mysql:
        found.append(f"GRANT SELECT ON `performance_schema`.* TO {login}")
    if kind == FenceKind.ACCOUNT_LOCK:
        return [
            *found,
            f"GRANT CREATE USER, {'CONNECTION_ADMIN' if mysql else 'CONNECTION ADMIN'} ON *.* TO {login}",
        ]
    if kind == FenceKind.READ_ONLY:
        return [*found, f"GRANT {'SYSTEM_VARIABLES_ADMIN' if mysql else 'READ_ONLY ADMIN'} ON *.* TO {login}"]
    return [*found, f"GRANT SELECT, TRIGGER ON {tables} TO {login}"]


def accepted_ways(project: Wanted, sides: Mapping[str, Database]) -> list[str]:
    """The ways round a fence that are there on throw-away servers alone: their administrators may empty tables, and
    so may whoever raises the fence of a new side, where its notes are among the tables."""
    found = []
    for side, database in sides.items():
        if database.kind != "postgresql":
            dropping = "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE Drop_priv = 'Y' ORDER BY 1"
            found += [f"truncate {account}" for (account,) in query(database, dropping)]
            fencer = project.text("cutover", f"{side}_fencer")
            found += [f"truncate {fencer}@%"] if fencer and side == "new" else []
    return list(dict.fromkeys(found))


def as_application(database: Database, name: str = APPLICATION) -> Database:
    """The database with the login of the application, made here: it may read and change all rows."""
    _role(database, name, login=True)
    if database.kind == "postgresql":
        schema, role = _quoted("postgresql", database.schema), _quoted("postgresql", name)
        rights = [
            f"GRANT CONNECT ON DATABASE {_quoted('postgresql', database.database)} TO {role}",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        ]
    else:
        place = _quoted("mysql", database.database)
        rights = [f"GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON {place}.* TO {account(name)}"]
    execute(database, rights)
    return replace(database, user=name, password=password_of(database.kind))


def whole_images(database: Database, tables: Sequence[Table]) -> list[str]:
    """Has the log hold whole rows where it doesn't; returns the statements that did so."""
    if database.kind != "postgresql":
        return []
    lacking = {
        str(row[0])
        for row in query(
            database,
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND c.relreplident <> 'f'",
            [database.schema],
        )
    }
    schema = _quoted("postgresql", database.schema)
    found = [
        f"ALTER TABLE {schema}.{_quoted('postgresql', one.name)} REPLICA IDENTITY FULL"
        for one in tables
        if one.name in lacking
    ]
    execute(database, found)
    return found


def _role(database: Database, name: str, *, login: bool) -> None:
    if name == SUPERUSERS[database.kind]:
        return
    if database.kind == "postgresql":
        if query(database, "SELECT 1 FROM pg_roles WHERE rolname = %s", [name]):
            role = sql.SQL("ALTER ROLE {} {}")
        else:
            role = sql.SQL("CREATE ROLE {} {}")
        kind = sql.SQL("LOGIN" if login else "")
        text = role.format(sql.Identifier(name), kind).as_string(None).strip()
        execute(database, [text] if login or text.startswith("CREATE") else [])
    else:
        login_of = account(name).replace("%", "%%")
        query(
            database, f"CREATE USER IF NOT EXISTS {login_of} IDENTIFIED BY %s", [password_of(database.kind)]
        )


def _quoted(kind: str, name: str) -> str:
    mark = '"' if kind == "postgresql" else "`"
    return mark + name.replace(mark, mark * 2) + mark
