"""The section ``[observe]`` of ``migration.toml``: metrics and health of runs, by whom they are asked for; events."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from migrator.config.secret import Get, Problem, Secrets, settings_of
from migrator.config.setting import Setting, choice
from migrator.errors import ConfigError
from migrator.model.cutover.hook import url_problem
from migrator.model.observed.bounds import SHARES, Bounds
from migrator.model.observed.listening import Listening, is_loopback

SECTION = "observe"
_PEM = "PEM file, with `listen`"
_PAGE = "from when on [the page](how-to/observe/live-page.md) says"
SETTINGS: Mapping[str, Setting] = {
    "listen": Setting(
        str,
        "`host:port` at which a run, leading or standing by, tells [metrics](how-to/observe/observe.md) and health,"
        " and has its [live page](how-to/observe/live-page.md): `127.0.0.1:9464`."
        " Another host than this machine's own loopback needs a token or `tls_client_ca`",
        "",
        "nowhere",
    ),
    "reverse_listen": Setting(
        str, "the same of the way back's run (`migrator run --reverse`)", "", "nowhere"
    ),
    **settings_of(
        "token",
        "where the token is that every request must bring as `Authorization: Bearer`"
        " ([Passwords](how-to/secrets.md#passwords))",
    ),
    **settings_of(
        "control_token",
        "where the token is with which the [live page](how-to/observe/live-page.md#requests) may pause, resume, pace"
        " and dump again; none: it only shows",
    ),
    "tls_cert": Setting(str, f"{_PEM}: the certificate that is shown; without it there is no TLS"),
    "tls_key": Setting(str, f"{_PEM}: that certificate's key"),
    "tls_client_ca": Setting(
        str, f"{_PEM}: the authority of clients' certificates; who shows none of it is refused"
    ),
    "log_format": choice(
        "form of [`<state>/run.log`](how-to/observe/log.md): lines to read, or a JSON document a line",
        "text",
        "json",
    ),
    "log_bytes": Setting(
        int, "size at which `run.log` is put aside as `run.log.1`, and so on up to `run.log.5`", 10 << 20
    ),
    "on_event": Setting(
        str,
        "command or URL that is told when a run ended, took over, or is behind by more than `max_lag_s`, when rows"
        " differ, and when the source is about to give up its log ([The hook](how-to/observe/log.md#the-hook))",
    ),
    "max_lag_s": Setting(
        float,
        "the lag from which on that is an event, and [the page](how-to/observe/live-page.md) says so",
        60.0,
    ),
    "stalled_s": Setting(
        float, f"{_PAGE} that nothing is applied: seconds that captured changes wait without a batch", 60.0
    ),
    "slow_source_s": Setting(
        float, f"{_PAGE} that the network is slow: seconds of a small question to the source", 0.5
    ),
    "slow_target_s": Setting(float, "the same of the target", 1.0),
    "least_disk_bytes": Setting(
        int, f"{_PAGE} that the state folder's disk fills: bytes free", 1_000_000_000
    ),
    "most_log_bytes": Setting(
        int, f"{_PAGE} that a source without any bound keeps much log: bytes of it", 20_000_000_000
    ),
    "log_left_share": Setting(
        float, f"{_PAGE} that the source is about to give up its log: share left of its own bound", 0.25
    ),
    "log_age_share": Setting(
        float,
        "the same by time: share of the time for which the source keeps its log that the target is behind",
        0.5,
    ),
    "hot_share": Setting(
        float, f"{_PAGE} that one table has nearly all changes, while the target is behind: share of all", 0.8
    ),
}
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)):(?P<port>\d{1,5})")
_LAST_PORT = 65535
_LEAST_LOG_BYTES = 65_536
_FORM = "write host:port, such as 127.0.0.1:9464"
_FILES = ("tls_cert", "tls_key", "tls_client_ca")


@dataclass(frozen=True, slots=True)
class EventSettings:
    """The log of events, and who is told of some of them; see ``SETTINGS``."""

    log_format: str = "text"
    log_bytes: int = 10 << 20
    on_event: str = ""
    max_lag_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ObserveSettings:
    """The addresses at which runs may be asked, this way's and the way back's; None: nowhere.

    ``guard`` has token and certificates, which hold for any address; ``bounds`` are the live page's.
    """

    there: Listening | None = None
    back: Listening | None = None
    guard: Listening = field(default_factory=lambda: Listening("", 0))
    events: EventSettings = EventSettings()
    bounds: Bounds = field(default_factory=Bounds)

    def turned(self) -> ObserveSettings:
        """The way back's. It dumps nothing, so nothing can be asked for there."""
        back = None if self.back is None else replace(self.back, control=None)
        return replace(self, there=back, back=None, guard=replace(self.guard, control=None))

    def at(self, address: str) -> Listening:
        """The same guard at an address of a command's. Raises ``ConfigError`` naming it, the cause and the remedy."""
        found = _parsed(address)
        wrong = f"{address!r} is no address: {_FORM}" if found is None else _unguarded(*found, self.guard)
        if wrong or found is None:
            raise ConfigError(
                f"metrics can't be served at {address!r}", where="--listen", cause=wrong, remedy=_REMEDY
            )
        return replace(self.guard, host=found[0], port=found[1])


_REMEDY = (
    "listen at 127.0.0.1, or name a token (token_env, token_file), or tls_cert, tls_key and tls_client_ca,"
    " in [observe]"
)


def read(root: Path, get: Get, problem: Problem, environment: Mapping[str, str]) -> ObserveSettings:
    """The section's settings; what is wrong with them goes to ``problem``. Relative paths begin at ``root``."""
    token, control = (_token(name, root, get, problem, environment) for name in ("token", "control_token"))
    if control is not None and control == token:
        problem(
            _place("control_token", get), "it is the token that lets read: whoever reads could ask as well"
        )
    files = {name: str(get(name)) for name in _FILES}
    for name, file in files.items():
        path = root / file
        if file and not (path.is_file() and os.access(path, os.R_OK)):
            problem(name, f"{path} is no file that can be read; correct it, or its rights")
    if bool(files["tls_cert"]) != bool(files["tls_key"]):
        missing = "tls_key" if files["tls_cert"] else "tls_cert"
        problem(missing, "a certificate and its key go together: name both files, or neither")
    if files["tls_client_ca"] and not files["tls_cert"]:
        problem("tls_client_ca", "clients show certificates in TLS only: name tls_cert and tls_key as well")
    guard = Listening(
        "", 0, token, control, **{name: str(root / file) if file else "" for name, file in files.items()}
    )
    there, back = (_listening(name, get, problem, guard) for name in ("listen", "reverse_listen"))
    return ObserveSettings(there, back, guard, _events(get, problem), _bounds(get, problem))


def _token(name: str, root: Path, get: Get, problem: Problem, environment: Mapping[str, str]) -> str | None:
    token = Secrets(root, get, problem, environment).read(name)
    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        problem(_place(name, get), "a token is ASCII without blanks, and not empty")
    return token


def _place(name: str, get: Get) -> str:
    return f"{name}_file" if get(f"{name}_file") else f"{name}_env"


def _events(get: Get, problem: Problem) -> EventSettings:
    found = EventSettings(*(get(one.name) for one in fields(EventSettings)))
    forms = SETTINGS["log_format"].choices
    if found.log_format not in forms:
        problem("log_format", f"{found.log_format!r} is none of {', '.join(forms)}")
    if found.log_bytes < _LEAST_LOG_BYTES:
        problem("log_bytes", f"{found.log_bytes} is less than {_LEAST_LOG_BYTES}")
    if wrong := url_problem(found.on_event):
        problem("on_event", wrong)
    return found


def _bounds(get: Get, problem: Problem) -> Bounds:
    found = Bounds(*(get(one.name) for one in fields(Bounds)))
    for one in fields(Bounds):
        value = getattr(found, one.name)
        if value <= 0:
            problem(one.name, f"{value:g} is not above 0")
        elif one.name in SHARES and value > 1:
            problem(one.name, f"{value:g} is a share, and above 1")
    return found


def _listening(setting: str, get: Get, problem: Problem, guard: Listening) -> Listening | None:
    address = str(get(setting))
    if not address:
        return None
    found = _parsed(address)
    if found is None:
        problem(setting, f"{address!r} is no address: {_FORM}")
        return None
    if wrong := _unguarded(*found, guard):
        problem(setting, f"{address!r}: {wrong}; {_REMEDY}")
    return replace(guard, host=found[0], port=found[1])


def _parsed(address: str) -> tuple[str, int] | None:
    found = _HOST.fullmatch(address)
    if found is None or int(found["port"]) > _LAST_PORT:
        return None
    return found["six"] or found["name"], int(found["port"])


def _unguarded(host: str, _port: int, guard: Listening) -> str:
    """Returns why such an address can't be listened at without a guard; empty where it may."""
    if is_loopback(host):
        return ""
    if guard.control and not guard.tls_cert:
        return "control_token could be read on its way and used by others: name tls_cert and tls_key"
    if guard.token or guard.tls_client_ca:
        return ""
    return f"whoever reaches {host} could read names of tables, positions and errors without a token or a certificate"
