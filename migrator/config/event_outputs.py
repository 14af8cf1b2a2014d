"""Settings of an output of change events, as the options of ``migrator events`` say it: all problems together."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from migrator.config.secret import Secrets
from migrator.errors import ConfigError

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_OURS = frozenset(
    {"content-type", "content-length", "transfer-encoding", "host", "idempotency-key", "connection"}
)
_PREFIX, _PREFIX_CHARACTERS = re.compile(r"[A-Za-z0-9._-]+"), 100
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")
_PROPERTY = re.compile(r"[a-z0-9._]+")
_OURS_OF_KAFKA = frozenset(
    {"bootstrap.servers", "metadata.broker.list", "transactional.id", "enable.idempotence", "isolation.level"}
    | {"group.id", "enable.auto.commit", "enable.partition.eof", "auto.offset.reset"}
)
_NEAR = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class EventOptions:
    """An output as it was asked for; empty texts for what wasn't said.

    Attributes:
        kind: ``json``, ``parquet``, ``http`` or ``kafka``.
        output: a file, folder, URL, or servers.
        name: what the place in the event log is filed under, instead of ``output``.
        token_env, token_file: where the token of an API is.
        headers: file of further headers.
        ca: PEM file of the authority that the server's certificate is from.
        batch_events, batch_bytes: most of a batch.
        timeout_s, patience_s: for one answer, and for an API that takes nothing.
        client: file of properties of the Kafka client.
        prefix: of the topics' names.
        schemas: whether messages carry their schema.
    """

    kind: str = "json"
    output: str = "-"
    name: str = ""
    token_env: str = ""
    token_file: str = ""
    headers: Path | None = None
    ca: Path | None = None
    batch_events: int = 1000
    batch_bytes: int = 1 << 20
    timeout_s: float = 60.0
    patience_s: float = 900.0
    client: Path | None = None
    prefix: str = ""
    schemas: bool = True


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """An API that takes events. The values of ``headers`` are secret."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext | None


def http_settings(options: EventOptions, environment: Mapping[str, str]) -> HttpSettings:
    """Reads the files and variables that are named. Raises ``ConfigError`` for everything that is wrong with them."""
    problems = _url_problems(options.output)
    headers = _headers(options.headers, problems)

    def problem(setting: str, text: str) -> None:
        problems.append((f"--{setting.replace('_', '-')}", text))

    places = {"token_env": options.token_env, "token_file": options.token_file, "token_keyring": ""}
    token = Secrets(Path(), places.__getitem__, problem, environment).read("token")
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if any(not value.isprintable() or not value.isascii() for value in headers.values()):
        problem("headers" if token is None else "token", "its values must be printable ASCII on one line")
    parts = urlsplit(options.output)
    if headers and parts.scheme == "http" and parts.hostname not in _NEAR and not problems:
        problem("output", "a token or header would travel unencrypted: give an https address")
    tls = _tls(options.ca, problems) if parts.scheme == "https" else None
    refuse(problems)
    return HttpSettings(options.output, headers, tls)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Brokers that take events. ``client`` holds properties of the client, some of them secret."""

    servers: str
    prefix: str
    client: Mapping[str, str] = field(repr=False)


def kafka_settings(options: EventOptions, migration: str) -> KafkaSettings:
    """Reads the client's properties. Raises ``ConfigError`` for everything that is wrong with them."""
    problems: list[tuple[str, str]] = []
    prefix = options.prefix or migration
    if not _PREFIX.fullmatch(prefix) or len(prefix) > _PREFIX_CHARACTERS:
        problems.append(("--prefix", f"up to {_PREFIX_CHARACTERS} letters, digits, dots, - and _"))
    if not all(_SERVER.fullmatch(server) for server in options.output.split(",")):
        problems.append(("--output", "it must be brokers as host:port,host:port"))
    client: dict[str, str] = {}
    for number, line in enumerate(read_lines("--client", options.client, problems), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not _PROPERTY.fullmatch(name):
            problems.append(("--client", f"line {number} isn't `name=value`"))
        elif name in _OURS_OF_KAFKA:
            problems.append(("--client", f"line {number}: {name} is set by the migrator"))
        else:
            client[name] = value
    refuse(problems)
    return KafkaSettings(options.output, prefix, client)


def refuse(problems: list[tuple[str, str]]) -> None:
    """Raises ``ConfigError`` for options and what is wrong with each; nothing where there are none."""
    if problems:
        raise ConfigError(
            "the output can't be used as it is given",
            where=", ".join(dict.fromkeys(option for option, _ in problems)),
            cause="; ".join(f"{option}: {text}" for option, text in problems),
            remedy="correct these options",
        )


def _url_problems(url: str) -> list[tuple[str, str]]:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine or not url.isascii() or not url.isprintable() or " " in url:
        return [("--output", "it must be an address as https://host/path")]
    if parts.username is not None or parts.password is not None:
        return [("--output", "a login must not stand in an address: use --token-file, or --headers")]
    return [("--output", "an address without a fragment (#)")] if parts.fragment else []


def _headers(file: Path | None, problems: list[tuple[str, str]]) -> dict[str, str]:
    """Headers of a file, one a line; empty lines and those that begin with # don't count."""
    headers: dict[str, str] = {}
    for number, line in enumerate(read_lines("--headers", file, problems), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _HEADER.fullmatch(line)
        if found is None:
            problems.append(("--headers", f"line {number} isn't `Name: value`"))
        elif found[1].lower() in _OURS:
            problems.append(("--headers", f"line {number}: {found[1]} is set by the migrator"))
        else:
            headers[found[1]] = found[2]
    return headers


def read_lines(option: str, file: Path | None, problems: list[tuple[str, str]]) -> list[str]:
    """Lines of a file that an option names; none where there is no such option, or it can't be read (noted)."""
    if file is None:
        return []
    try:
        return file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problems.append((option, f"the file can't be read ({getattr(error, 'strerror', None) or 'no text'})"))
        return []


def _tls(ca: Path | None, problems: list[tuple[str, str]]) -> ssl.SSLContext | None:
    try:
        return ssl.create_default_context(cafile=str(ca) if ca is not None else None)
    except (OSError, ssl.SSLError) as error:
        problems.append(("--ca", f"no PEM file of an authority ({error.strerror or type(error).__name__})"))
        return None
