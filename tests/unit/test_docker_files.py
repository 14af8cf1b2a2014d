"""The files under docker/, as far as they can be checked without a Docker engine."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
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
        if name == "COPY"
        for source in shlex.split(rest)[:-1]
        if not source.startswith("--")
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignore, source


def test_every_package_of_the_tool_is_copied() -> None:
    import tomllib

    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    copied = {shlex.split(rest)[0] for name, rest in INSTRUCTIONS if name == "COPY"}
    assert {package.partition(".")[0] for package in packages} <= copied


def test_the_image_does_not_run_as_root() -> None:
    users = [rest for name, rest in INSTRUCTIONS if name == "USER"]
    assert users
    assert users[-1] not in {"root", "0"}


def test_every_instruction_of_the_dockerfile_is_known() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD", "ENV", "ARG", "LABEL"}
    assert {name for name, _ in INSTRUCTIONS} <= known
    assert INSTRUCTIONS[0][0] == "FROM"


@pytest.mark.parametrize("service", [name for name in SERVICES if "image" in COMPOSE["services"][name]])
def test_images_are_pinned_and_have_a_health_check(service: str) -> None:
    settings = COMPOSE["services"][service]
    assert re.search(r":\d+\.\d+", settings["image"]), "a full version, not `latest` or a major version"
    assert settings["healthcheck"]["test"][0] == "CMD-SHELL"


def test_the_base_image_is_pinned() -> None:
    assert re.search(r":\d+\.\d+", INSTRUCTIONS[0][1])


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
            assert source in COMPOSE["volumes"] or source.startswith("${PROJECT"), (name, source)
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
