"""The one configuration object, read from ``migration.toml`` and the environment.

Unknown settings are refused, and all problems are reported together with file, line and remedy. Passwords come from
places that the file names (see ``migrator.config.secret``); they are never printed, logged or stored.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from migrator.config import back as config_back
from migrator.config import coordination as config_coordination
from migrator.config import cutover as config_cutover
from migrator.config import observe as config_observe
from migrator.config.back import SUFFIX, Back
from migrator.config.cutover import CutoverSettings
from migrator.config.engines import ENGINES, EngineFacts, names_where, placements
from migrator.config.observe import ObserveSettings
from migrator.config.secret import WAYS, Secrets, concerns_secret, literal_problem
from migrator.config.sections import FORMAT, SECTIONS
from migrator.config.setting import TYPE_NAMES, Setting
from migrator.errors import ConfigError
from migrator.model.codecs.codec import NEWER
from migrator.model.coordination import Coordination
from migrator.model.limits import MOST_WORKERS, ApplyLimits, CaptureLimits
from migrator.model.server import Server

NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Spark master URL and ``spark.*`` options, passed through.

    On a cluster: ``py_files`` are shipped to executors beside the tool and the mapping's modules; ``wait_s`` is how
    long to wait for the first executor. ``keep_classes``, in no file: whether Spark leaves an archive of its classes.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: tuple[Path, ...] = ()
    wait_s: float = 60.0
    keep_classes: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a migration project configures. Paths are absolute.

    ``log``: the source's own log, or change tables that triggers fill. Of these, ``forget_changes`` deletes
    what was read. ``keep_until_applied``: the source forgets its log only when the target, not just the event
    log, holds it. ``replaced_tables``: what a run does when another table has a captured one's name.
    ``reason``: why the command is given, for the history; ``unproven_log``: see ``BinlogSource.unproven``;
    ``accepted``: targets whose changed mapping makes the same rows; all of these stand in no file.
    ``owner``: the target with the login of its tables' owner; None where it wasn't asked for.
    ``text_columns``: by table, the columns of a PostgreSQL source that travel as the text of their values.
    ``back``: the way back; ``reversed``: whether these are its settings. ``cutover``: of cut-overs.
    ``observe``: where runs tell of themselves.
    """

    file: Path
    name: str
    mapping: Path
    state: Path
    alembic: Path
    source: Server
    target: Server
    placement: str = "witness"
    streaming: bool = True
    failover: bool = True
    server_id: int = 0
    log: str = "server"
    forget_changes: bool = False
    keep_until_applied: bool = False
    replaced_tables: str = "read_again"
    capture: CaptureLimits = field(default_factory=CaptureLimits)
    apply: ApplyLimits = field(default_factory=ApplyLimits)
    spark: SparkSettings = field(default_factory=SparkSettings)
    coordination: Coordination | None = None
    reason: str = ""
    unproven_log: bool = False
    accepted: tuple[str, ...] = ()
    text_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    owner: Server | None = None
    back: Back | None = None
    reversed: bool = False
    cutover: CutoverSettings | None = None
    observe: ObserveSettings = field(default_factory=ObserveSettings)

    @property
    def counterpart(self) -> str:
        """Name of the migration that carries changes the other way. What it applied isn't carried back to it."""
        return self.name.removesuffix(SUFFIX) if self.reversed else f"{self.name}{SUFFIX}"

    def event_log(self) -> Path:
        """Directory of the event log."""
        return self.state / "eventlog"

    def changed_keys(self) -> Path:
        """Directory in which a run lists the keys that changes write (for cut-overs)."""
        return self.state / "changed-keys"

    def reports(self) -> Path:
        """Directory of verification reports."""
        return self.state / "reports"


_LAST_PORT = 65535
_STAGING = "executors load into {} targets only"
_NUMBER = Setting(float, "any number")
_TEXT_COLUMNS = 'write { prices = ["amount"] }'


def load(file: Path, environment: Mapping[str, str] | None = None, *, owner: bool = False) -> Settings:
    """Reads and checks a project's ``migration.toml``.

    Args:
        file: the file.
        environment: where passwords come from; the process's environment by default.
        owner: whether the login that owns the target's tables is wanted, and no other: who runs a migration needn't
            have its password, nor who owns the tables those of the migration.

    Raises:
        ConfigError: everything that is wrong with it, in one message.
    """
    try:
        text = file.read_text()
    except OSError as error:
        raise ConfigError(
            f"{file} can't be read",
            cause=error.strerror or str(error),
            remedy="run the command in a migration project's folder, or name its file with --config;"
            " `migrator init` makes a project",
        ) from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file} is no valid TOML", cause=str(error), remedy="correct the line named"
        ) from error
    reader = _Reader(file, text, document, os.environ if environment is None else environment)
    settings = reader.settings(owner)
    if reader.problems or settings is None:
        raise ConfigError(
            f"{len(reader.problems)} problem(s) in {file}",
            where="\n".join(reader.problems),
            remedy="correct the settings named; docs/reference/settings.md lists all of them",
        )
    return settings


class _Reader:
    """Turns a TOML document into settings, collecting problems instead of stopping at the first."""

    def __init__(self, file: Path, text: str, document: dict[str, Any], environment: Mapping[str, str]):
        self._file = file
        self._lines = text.splitlines()
        self._document = document
        self._environment = environment
        self.problems: list[str] = []

    def settings(self, with_owner: bool) -> Settings | None:
        """The settings, or None when there are problems."""
        found = self._get("migration", "format")
        if found != FORMAT:  # alone: what else seems to be wrong may be right in that format
            self._problem(
                "migration", "format", f"it is {found}, this version knows formats up to {FORMAT}: {NEWER}"
            )
            return None
        for section, value in self._document.items():
            self._check_section(section, value)
        root = self._file.resolve().parent
        name = self._text("migration", "name")
        if name and not NAME.fullmatch(name):
            self._problem("migration", "name", f"{name!r} is not [a-z][a-z0-9_]{{0,30}}")
        alone = with_owner and bool(self._get("target", "owner"))
        source = self._server("source", with_password=not with_owner)
        target = self._server("target", with_password=not alone)
        owner = self._owner(target) if with_owner else None
        placement = self._choice("source", "placement", placements(source.kind))
        log = self._choice("source", "log")
        self._check_log(log, source.kind, placement)
        text_columns = self._text_columns(source.kind)
        staging = self._choice("apply", "staging")
        if staging == "executors":
            self._check_engine("apply", "staging", target.kind, lambda facts: facts.staging, _STAGING)
        self._choice("capture", "chunk_reading")
        self._choice("apply", "bad_rows")
        self._check_positive()
        coordination = None if with_owner else self._coordination(root)
        back = None if with_owner else self._back(root, source, target)
        cutover = None if with_owner else self._cutover(root, source, target)
        observe = self._observe(root, with_owner)
        if self.problems:
            return None
        return Settings(
            file=self._file.resolve(),
            name=name,
            mapping=root / self._text("migration", "mapping"),
            state=root / self._text("migration", "state"),
            alembic=root / self._text("migration", "alembic"),
            source=source,
            target=target,
            placement=placement,
            streaming=self._get("source", "streaming"),
            failover=self._get("source", "failover"),
            server_id=self._get("source", "server_id"),
            log=log,
            forget_changes=self._get("source", "forget_changes"),
            keep_until_applied=self._get("source", "keep_until_applied"),
            replaced_tables=self._get("source", "replaced_tables"),
            capture=CaptureLimits(**self._document.get("capture", {})),
            apply=ApplyLimits(**self._document.get("apply", {})),
            spark=self._spark(root),
            coordination=coordination,
            text_columns=text_columns,
            owner=owner,
            back=back,
            cutover=cutover,
            observe=observe,
        )

    # -- checks -------------------------------------------------------------------------------------------------

    def _check_section(self, section: str, value: object) -> None:
        known = SECTIONS.get(section)
        if known is None or not isinstance(value, dict):
            self.problems.append(
                f"line {self._line(section, '')}: unknown section [{section}]; there are {', '.join(SECTIONS)}"
            )
            return
        for key, setting in value.items():
            wanted = known.get(key)
            if wanted is None:
                unknown = f"unknown setting; [{section}] has {', '.join(known)}"
                self._problem(section, key, literal_problem(key, known) or unknown)
            elif not wanted.fits(setting):
                shown = "it" if concerns_secret(key) else repr(setting)
                self._problem(section, key, f"{shown} is not {TYPE_NAMES[wanted.type]}")

    def _check_positive(self) -> None:
        for section in ("source", "target", "capture", "apply"):
            table = self._document.get(section)
            for key, number in table.items() if isinstance(table, dict) else ():
                checked = section in ("capture", "apply") or key in ("silence_s", "port")
                if checked and _NUMBER.fits(number) and number <= 0:
                    self._problem(section, key, f"{number!r} is not above 0")
                elif key == "port" and _NUMBER.fits(number) and number > _LAST_PORT:
                    self._problem(section, key, f"{number!r} is no port: {_LAST_PORT} is the last")
        if self._get("capture", "dump_share") > 1:
            self._problem("capture", "dump_share", "it is a share of the time: 1 at most")
        if self._get("capture", "dump_workers") > MOST_WORKERS:
            self._problem("capture", "dump_workers", f"there may be {MOST_WORKERS} at most")

    def _check_log(self, log: str, kind: str, placement: str) -> None:
        if log == "change_tables":
            words = "change tables are read on {} only"
            self._check_engine("source", "log", kind, lambda facts: facts.change_tables, words)
        if log == "change_tables" and placement != "witness":
            self._problem("source", "placement", "change tables need no watermarks: set it to witness")
        if log != "change_tables" and self._get("source", "forget_changes"):
            self._problem("source", "forget_changes", 'it says what to do with log = "change_tables"')

    def _check_engine(
        self, section: str, key: str, kind: str, has: Callable[[EngineFacts], bool], words: str
    ) -> None:
        """Refuses a setting that this kind of server hasn't; ``words`` say it, with a place for those that have."""
        if kind in ENGINES and not has(ENGINES[kind]):
            self._problem(section, key, words.format(names_where(has)))

    def _server(self, section: str, *, with_password: bool) -> Server:
        kind = self._choice(section, "kind")
        known = ENGINES.get(kind)
        root = self._file.resolve().parent
        get, problem = partial(self._get, section), partial(self._problem, section)
        tls_ca = get("tls_ca")
        if tls_ca and not (root / tls_ca).is_file():
            self._problem(section, "tls_ca", f"{root / tls_ca} is no file")
        schema = self._text(section, "schema")
        if schema:
            words = "databases have schemas on {} only; a database of another server is named by database"
            self._check_engine(section, "schema", kind, lambda facts: bool(facts.schema), words)
        return Server(
            kind=kind,
            host=self._text(section, "host"),
            port=get("port") or (known.port if known else 0),
            database=self._text(section, "database"),
            schema=schema or (known.schema if known else ""),
            user=self._text(section, "user"),
            password=Secrets(root, get, problem, self._environment).read("password")
            if with_password
            else None,
            tls=self._choice(section, "tls"),
            tls_ca=str(root / tls_ca) if tls_ca else "",
            silence_s=float(get("silence_s")),
        )

    def _owner(self, target: Server) -> Server:
        """The target with its owner's login; with the migration's where no other is set."""
        section, (get, problem) = "target", self._of("target")
        name = self._text(section, "owner")
        password = Secrets(self._file.resolve().parent, get, problem, self._environment).read(
            "owner_password"
        )
        if not name and any(get(f"owner_password_{way}") for way in WAYS):
            self._problem(section, "owner", "its password is named, and the login isn't: set owner")
        return replace(target, user=name, password=password) if name else target

    def _text_columns(self, kind: str) -> dict[str, frozenset[str]]:
        section = "source"
        tables = self._get(section, "text_columns")
        if tables:
            words = "it is for sources on {}"
            self._check_engine(section, "text_columns", kind, lambda facts: facts.text_columns, words)
        for table, names in tables.items():
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                self._problem(
                    section, "text_columns", f"{names!r} is no list of columns of {table}: {_TEXT_COLUMNS}"
                )
                return {}
        return {table: frozenset(names) for table, names in tables.items()}

    def _coordination(self, root: Path) -> Coordination | None:
        """The ensemble; None without the section: leadership is a matter of one machine then."""
        if not isinstance(self._document.get("coordination"), dict):
            return None
        return config_coordination.read(root, *self._of("coordination"), self._environment)

    def _back(self, root: Path, source: Server, target: Server) -> Back:
        asked = self._of(config_back.SECTION)
        return config_back.back_of(root, (source, target), *asked, Secrets(root, *asked, self._environment))

    def _cutover(self, root: Path, source: Server, target: Server) -> CutoverSettings:
        asked = self._of(config_cutover.SECTION)
        return config_cutover.cutover_of((source, target), *asked, Secrets(root, *asked, self._environment))

    def _observe(self, root: Path, with_owner: bool) -> ObserveSettings:
        asked = self._of(config_observe.SECTION)
        return ObserveSettings() if with_owner else config_observe.read(root, *asked, self._environment)

    def _spark(self, root: Path) -> SparkSettings:
        conf = self._get("spark", "conf")
        return SparkSettings(
            self._text("spark", "master"),
            {str(key): str(value) for key, value in conf.items()},
            tuple(root / str(file) for file in self._get("spark", "py_files")),
            float(self._get("spark", "wait_s")),
        )

    def _of(self, section: str) -> tuple[Callable[[str], Any], Callable[[str, str], None]]:
        """Returns what reads a section's settings, and what takes the problems with them."""
        return partial(self._get, section), partial(self._problem, section)

    # -- values -------------------------------------------------------------------------------------------------

    def _get(self, section: str, key: str) -> Any:
        """A setting's value; its default where the file doesn't set it, or sets another type (a problem by then)."""
        table, setting = self._document.get(section), SECTIONS[section][key]
        value = table.get(key, setting.default) if isinstance(table, dict) else setting.default
        return value if setting.fits(value) else setting.default

    def _text(self, section: str, key: str) -> str:
        value, setting = str(self._get(section, key)), SECTIONS[section][key]
        table = self._document.get(section)
        if not value and not (isinstance(table, dict) and key in table and not isinstance(table[key], str)):
            if setting.needed:
                self.problems.append(f"line {self._line(section, '')}: [{section}] needs the setting {key!r}")
            return str(setting.default)
        return value

    def _choice(self, section: str, key: str, allowed: tuple[str, ...] = ()) -> str:
        """A value out of the setting's choices, or of those of them that are ``allowed`` here."""
        value = self._text(section, key)
        allowed = allowed or SECTIONS[section][key].choices
        if value and value not in allowed:
            self._problem(section, key, f"{value!r} is none of {', '.join(allowed)}")
        return value

    # -- messages -----------------------------------------------------------------------------------------------

    def _problem(self, section: str, key: str, text: str) -> None:
        self.problems.append(f"line {self._line(section, key)}: {section}.{key}: {text}")

    def _line(self, section: str, key: str) -> int:
        """Line number of a setting, or of its section's heading; 1 when the section is missing."""
        start = next(
            (n for n, line in enumerate(self._lines, 1) if line.strip().startswith(f"[{section}")), 0
        )
        if key:
            pattern = re.compile(rf"\s*(\[{section}\.)?\"?{re.escape(key)}\"?\s*[=\]]")
            found = (n for n, line in enumerate(self._lines, 1) if n > start and pattern.match(line))
            return next(found, start or 1)
        return start or 1
