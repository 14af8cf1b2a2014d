"""``migrator init``."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qsl, unquote, urlsplit

import click

from migrator.cli.init.begun import Begun, BegunTable
from migrator.cli.init.project_text import mapping_text, tests_text
from migrator.cli.init.reverse import init_reverse
from migrator.cli.options import json_option
from migrator.config import project as configuration
from migrator.config.engines import ENGINES, EXAMPLE, EngineFacts, kind_of_scheme, names_where
from migrator.config.project import NAME
from migrator.errors import ConfigError
from migrator.own_modules import own
from migrator.schema.dialects import DIALECTS
from migrator.wiring.reflection import Reflected, reflected
from transforms.analysis.matched import Matched, guessed, matched, same_name

_REVISION = "alembic/versions/0001_new_schema.py"
_TEMPLATES = {
    "migration.toml": "migration.toml.txt",
    "mapping.py": "mapping.py.txt",
    "tests/test_mapping.py": "test_mapping.py.txt",
    "alembic.ini": "alembic.ini.txt",
    "alembic/env.py": "env.py.txt",
    "alembic/script.py.mako": "script.py.mako.txt",
    _REVISION: "first_revision.py.txt",
}


@dataclass(frozen=True, slots=True)
class _Server:
    kind: str
    host: str
    port: int
    database: str
    user: str
    schema: str = ""
    password_env: str = ""

    def text(self, section: str) -> str:
        """Returns the server's settings as lines of the configuration file."""
        lines = [
            f"{name} = {json.dumps(getattr(self, name))}" for name in ("kind", "host", "port", "database")
        ]
        lines += [f"schema = {json.dumps(self.schema)}"] if self.schema else []
        lines.append(f"user = {json.dumps(self.user)}")
        comment = "    # name of an environment variable, never the password itself"
        if self.password_env:
            lines.append(f"password_env = {json.dumps(self.password_env)}{comment}")
        else:
            lines.append(
                f'# password_env = "{section.upper()}_PASSWORD"{comment}; or password_file, password_keyring'
            )
        lines.append(
            '# tls = "verify-full"    # with tls_ca = "ca.pem"; prefer, the default, does not check who answers'
        )
        return "\n".join(lines)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--reverse",
    is_flag=True,
    help="Into the project in FOLDER: the mapping of the way back, as far as it follows from its mapping.",
)
@click.option("--name", default=None, help="Name of the migration; the folder's name by default.")
@click.option("--source", type=click.Choice(tuple(ENGINES)), default=EXAMPLE, show_default=True)
@click.option(
    "--source-url", default=None, metavar="URL", help="The old database: mysql://user@host:3306/shop"
)
@click.option(
    "--target-url", default=None, metavar="URL", help="The new one: postgresql://user@host/shop?schema=public"
)
@click.option(
    "--source-password-env", default="", metavar="NAME", help="Environment variable with its password."
)
@click.option(
    "--target-password-env", default="", metavar="NAME", help="Environment variable with its password."
)
@json_option
def init(
    folder: Path,
    reverse: bool,
    name: str | None,
    source: str,
    source_url: str | None,
    target_url: str | None,
    source_password_env: str,
    target_password_env: str,
    as_json: bool,
) -> None:
    """Write a migration project into FOLDER: settings, mapping, its tests, and the new schema's revisions.

    With both URLs the mapping is made from the two schemas: tables and columns of one name are matched, everything
    else is a gap, marked, and named by `migrator explain` and `migrator check`.
    """
    begun = Begun(as_json)
    if reverse:
        _refuse_beside_reverse(name, source_url, target_url)
        init_reverse(folder, begun)
        begun.print()
        return
    begun.migration = name = name or folder.resolve().name.lower().replace("-", "_")
    _refuse_to_begin(folder, name, source_url, target_url)
    texts = {file: _template(template) for file, template in _TEMPLATES.items()}
    if source_url is not None and target_url is not None:
        old = _server("--source-url", source_url, source_password_env)
        new = _server("--target-url", target_url, target_password_env)
        texts["migration.toml"] = _settings_text(name, old, new)
        texts |= _from_schemas(texts["migration.toml"], old.kind, begun)
    else:
        old = _Server(source, "127.0.0.1", ENGINES[source].port, "old", "migrator")
        new = _Server(EXAMPLE, "127.0.0.1", ENGINES[EXAMPLE].port, "new", "migrator")
        texts["migration.toml"] = _settings_text(name, old, new)
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as opened:
            opened.write(text)
        begun.file(path)
    _ignore(folder / ".gitignore", _template("gitignore.txt"), begun)
    if target_url is not None:
        _dump_to_write(folder, new.kind, new.database, begun)
    begun.next(f"edit these files, then `cd {folder}`, `migrator schema upgrade`, `migrator check`")
    begun.print()


def _refuse_to_begin(folder: Path, name: str, source_url: str | None, target_url: str | None) -> None:
    """Raises ``ConfigError`` for a name that can't be one, files that are there, and one URL alone."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} can't be the name of a migration",
            cause="it must be [a-z][a-z0-9_]{0,30}: slot, publication and ledger row are named after it",
            remedy="choose one with --name",
        )
    taken = [file for file in _TEMPLATES if (folder / file).exists()]
    if taken:
        raise ConfigError(
            f"{folder} already holds {', '.join(taken)}",
            cause="init never overwrites a file",
            remedy="choose another folder, or remove them",
        )
    if (source_url is None) != (target_url is None):
        raise ConfigError(
            "one URL alone is of no use",
            cause="the mapping is made from the old schema and the new one",
            remedy="give --source-url and --target-url, or neither for a project with an example",
        )


def _dump_to_write(folder: Path, kind: str, database: str, begun: Begun) -> None:
    """Names the command that writes the new structure down, for whoever has no access to the new database."""
    file = (folder / _REVISION).with_suffix(".sql")
    begun.to_write(
        f"{DIALECTS[kind].dump} {shlex.quote(database)} > {shlex.quote(str(file))}",
        ", with the new server's address: rehearsals, tests under hazards and incidents make the new tables from it",
    )


def _refuse_beside_reverse(*others: str | None) -> None:
    if any(other is not None for other in others):
        raise ConfigError(
            "--reverse takes no other option",
            cause="names and servers stand in the project's migration.toml",
            remedy="leave the others out: migrator init --reverse FOLDER",
        )


def _ignore(path: Path, text: str, begun: Begun) -> None:
    """Writes which files are for nobody else; what is there already stays, and only what it lacks is added."""
    there = path.read_bytes() if path.exists() else b""
    lines = there.decode("utf-8", "replace").splitlines()
    lacks = [line for line in text.splitlines() if line not in lines]
    if not there or any(not line.startswith("#") for line in lacks):
        end = b"" if not there or there.endswith(b"\n") else b"\n"
        with path.open("ab") as opened:
            opened.write(end + "\n".join([*lacks, ""]).encode())
        begun.file(path, "added to" if there else "wrote")


def _template(name: str) -> str:
    return (files(own("migrator.cli.init.template")) / name).read_text()


def _settings_text(name: str, old: _Server, new: _Server) -> str:
    return _template("migration.toml.txt").format(
        name=name, source=old.text("source"), target=new.text("target")
    )


def _server(option: str, url: str, password_env: str) -> _Server:
    """Parses ``kind://user@host:port/database?schema=name``. Raises ``ConfigError``."""
    try:
        parts = urlsplit(url)
        kind = kind_of_scheme(parts.scheme)
        port, more = (
            parts.port or (ENGINES[kind].port if kind in ENGINES else 0),
            dict(parse_qsl(parts.query, strict_parsing=bool(parts.query))),
        )
    except ValueError as error:
        raise _wrong_url(option, str(error)) from error
    if parts.password is not None:
        name = option.removeprefix("--").removesuffix("-url")
        raise ConfigError(
            f"{option} holds a password",
            cause="other users of the machine see the arguments of a command, and the file would keep it",
            remedy=f"leave it out, put it into an environment variable, and name that with --{name}-password-env",
        )
    database = unquote(parts.path.removeprefix("/"))
    missing = [
        what
        for what, value in (("user", parts.username), ("host", parts.hostname), ("database", database))
        if not value
    ]
    if kind not in ENGINES:
        raise _wrong_url(option, f"{parts.scheme or 'no scheme'!r} is none of {', '.join(ENGINES)}")
    if missing or set(more) - {"schema"}:
        raise _wrong_url(
            option, f"it lacks {', '.join(missing)}" if missing else f"unknown: {', '.join(more)}"
        )
    if "schema" in more and not _has_schemas(ENGINES[kind]):
        raise _wrong_url(option, f"only {names_where(_has_schemas)} has schemas beside databases")
    user, host = unquote(parts.username or ""), parts.hostname or ""
    return _Server(kind, host, port, database, user, more.get("schema", ""), password_env)


def _has_schemas(facts: EngineFacts) -> bool:
    return bool(facts.schema)


def _wrong_url(option: str, cause: str) -> ConfigError:
    remedy = f"write kind://user@host:port/database, for {names_where(_has_schemas)} also ?schema=name"
    return ConfigError(f"{option} can't be read", cause=cause, remedy=remedy)


def _from_schemas(settings: str, kind: str, begun: Begun) -> dict[str, str]:
    """The files that depend on the two schemas. Raises what can't be read of them."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "migration.toml"
        file.write_text(settings)
        found = reflected(configuration.load(file))
    if not found.new:
        raise ConfigError(
            "the new database has no table to fill",
            cause="; ".join(f"{name}: {why}" for name, why in found.refused_new.items()),
            remedy="create the new schema first, or leave the URLs out for a project with an example",
        )
    tables, gaps = _matches(found, kind)
    read = {table.source.id.name for table in tables}
    _tell_tables(tables, gaps, begun)
    unread = [schema for name, schema in found.old.items() if name not in read]
    return {
        "mapping.py": mapping_text(tables, gaps, unread, found.refused_old),
        "tests/test_mapping.py": tests_text(tables),
        _REVISION: _template("found_revision.py.txt"),
    }


def _matches(found: Reflected, kind: str) -> tuple[list[Matched], dict[str, str]]:
    """The new tables, each with the old one that fills it or may do so, and why others are gaps without one."""
    tables, gaps = [], dict[str, str]()
    texts, names = ENGINES[kind].texts_of_times, list(found.old)
    unread = set(names) - {same_name(name, names) for name in found.new}
    for name, target in found.new.items():
        old = same_name(name, names)
        if old is not None:
            tables.append(matched(found.old[old], target, texts))
        elif found.old and name not in found.refused_old:
            tables.append(guessed(found.old, unread, target, texts))
        else:
            gaps[name] = found.refused_old.get(name) or "no old table has its name"
    gaps |= found.refused_new
    return tables, gaps


def _tell_tables(tables: list[Matched], gaps: dict[str, str], begun: Begun) -> None:
    for table in tables:
        name, columns = table.target.id.name, [one.target.name for one in table.columns if one.gap]
        said = f"gap: {table.guess}" if table.guess else ""
        said = said or (f"gaps: {', '.join(columns)}" if columns else "all columns matched")
        begun.table(BegunTable(name, (table.source.id.name,), columns, table.guess), f"{name}: {said}")
    for name, why in gaps.items():
        begun.table(BegunTable(name, (), (), why), f"{name}: gap: {why}")
