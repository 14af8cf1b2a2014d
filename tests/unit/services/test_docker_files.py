"""The files under docker/, as far as they can be checked without a Docker engine."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yml").read_text())
DOCKERFILE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
INSTRUCTIONS = [line.split(maxsplit=1) for line in DOCKERFILE if line and not line.startswith("#")]
SERVICES = sorted(COMPOSE["services"])


def test_every_copied_source_exists_and_is_let_through_the_ignore_file() -> None:
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    sources = [
        source
        for name, rest in INSTRUCTIONS
        if name == "COPY" and "--from=" not in rest
        for source in shlex.split(rest)[:-1]
        if not source.startswith("--")
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignore, source


def test_every_package_of_the_tool_is_copied() -> None:
    import tomllib

    installation = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = [
        installation["package-dir"].get(name, name).replace("/", ".") for name in installation["packages"]
    ]
    copied = {shlex.split(rest)[0] for name, rest in INSTRUCTIONS if name == "COPY"}
    assert {package.partition(".")[0] for package in packages} <= copied


def test_the_image_runs_as_a_user_that_owns_its_volume() -> None:
    [user] = [rest for name, rest in INSTRUCTIONS if name == "USER"]
    number = user.partition(":")[0]
    assert number.isdigit(), "runAsNonRoot of Kubernetes knows no names"
    assert number != "0"
    runs = [rest for name, rest in INSTRUCTIONS if name == "RUN"]
    assert any(f"useradd --create-home --uid {number}" in rest for rest in runs)
    [volume] = [rest for name, rest in INSTRUCTIONS if name == "VOLUME"]
    made = next(rest for rest in runs if "chown" in rest)
    assert made.startswith(f"mkdir {volume.rpartition('/')[2]} && chown --recursive migrator:migrator ")
    names = [name for name, _ in INSTRUCTIONS]
    assert names.index("VOLUME") > INSTRUCTIONS.index(["RUN", made]), "what is changed after it is lost"


def test_it_has_an_init_and_a_health_check_and_says_that_it_lives() -> None:
    said = dict(INSTRUCTIONS)
    assert json.loads(said["ENTRYPOINT"]) == ["tini", "--", "entrypoint"]
    assert said["HEALTHCHECK"].endswith('CMD ["healthy"]')
    assert "MIGRATOR_ALIVE_FILE=/tmp/migrator-alive" in said["ENV"]
    assert "PATH=/opt/migrator/bin:$PATH" in said["ENV"], "alembic is reached by it"


def test_nothing_is_installed_that_is_not_locked() -> None:
    installs = [
        part
        for name, rest in INSTRUCTIONS
        if name == "RUN"
        for part in re.split("&&", rest)
        if "pip " in part
    ]
    assert len(installs) > 3
    for install in installs:
        locked = "--require-hashes" in install or "--no-deps" in install or "uninstall" in install
        assert locked, install
        assert (
            "wheel" not in install.split() or "--no-build-isolation" in install or "uninstall" in install
        ), install


def test_every_instruction_of_the_dockerfile_is_known() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD", "ENV", "ARG", "LABEL",
             "HEALTHCHECK", "VOLUME"}  # fmt: skip
    assert {name for name, _ in INSTRUCTIONS} <= known
    assert INSTRUCTIONS[0][0] == "FROM"


@pytest.mark.parametrize("service", [name for name in SERVICES if "image" in COMPOSE["services"][name]])
def test_images_are_pinned_and_have_a_health_check(service: str) -> None:
    settings = COMPOSE["services"][service]
    assert re.search(r":\d+\.\d+", settings["image"]), "a full version, not `latest` or a major version"
    assert settings["healthcheck"]["test"][0] == "CMD-SHELL"


def test_the_base_image_is_pinned() -> None:
    bases = {rest.removesuffix(" AS build") for name, rest in INSTRUCTIONS if name == "FROM"}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-\w+@sha256:[0-9a-f]{64}", bases.pop())


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_open_on_this_machine_only(service: str) -> None:
    for port in COMPOSE["services"][service].get("ports", []):
        assert port.startswith("127.0.0.1:"), port


def test_what_is_referred_to_is_defined() -> None:
    for name, service in COMPOSE["services"].items():
        for needed, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in COMPOSE["services"][needed], (name, needed)
        for volume in service.get("volumes", []):
            source = volume.rsplit(":", 1)[0]
            assert source.partition(":")[0] in COMPOSE["volumes"] or source.startswith("${PROJECT"), (
                name,
                source,
            )
        if "build" in service:
            context = (DOCKER / service["build"]["context"]).resolve()
            assert (context / service["build"]["dockerfile"]).exists()


def test_the_servers_log_rows_the_way_capture_needs() -> None:
    mysql = COMPOSE["services"]["mysql"]["command"]
    for option in ("--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL"):
        assert option in mysql
    assert "wal_level=logical" in COMPOSE["services"]["postgres"]["command"]


def test_docker_is_never_a_python_package() -> None:
    """An __init__.py here would hide the real `docker` package from testcontainers."""
    assert not list(DOCKER.rglob("__init__.py"))
