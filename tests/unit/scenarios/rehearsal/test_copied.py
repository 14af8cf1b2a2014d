"""The copy of a project: nothing in it leads to production, and everything else stays."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.errors import ConfigError
from scenarios.database import Database
from scenarios.rehearsal.copied import copy, password_of, wanted

PROJECT = """
[migration]
name = "shop"
[source]
kind = "postgresql"
host = "old.example.org"
port = 6000
database = "shop"
user = "migrator"
password_env = "NOT_SET_ANYWHERE"
tls = "verify-full"
tls_ca = "ca.pem"
[target]
kind = "mariadb"
host = "new.example.org"
database = "shop2"
user = "root"
password_keyring = "a/b"
[back]
writer = "way_back"
writer_password_env = "NOT_SET_EITHER"
[cutover]
hook = "point-the-application"
[coordination]
hosts = "zk.example.org:2181"
[spark]
master = "spark://cluster.example.org:7077"
[apply]
interval_s = 0.5
"""
SIDES = {
    "old": Database("postgresql", "127.0.0.1", 20001, "shop", "postgres"),
    "new": Database("mariadb", "127.0.0.1", 20002, "shop2", "root"),
}


def test_nothing_leads_to_production(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".migrator").mkdir(parents=True)
    (home / "migration.toml").write_text(PROJECT)
    (home / "reverse.py").write_text("")
    found = wanted(home / "migration.toml")
    assert found.reverse == "reverse.py"
    assert found.logins == {"old": ("migrator", "way_back"), "new": ("root",)}
    config, said = copy(found, tmp_path / "copy", SIDES, patient=False)
    assert "example.org" not in config.read_text()
    assert "NOT_SET" not in config.read_text()
    assert not (config.parent / ".migrator").exists()
    settings = configuration.load(config, environment={})
    assert (settings.source.port, settings.target.port) == (20001, 20002)
    assert settings.source.password
    assert settings.target.password is None
    assert settings.apply.interval_s == 0.5
    assert settings.coordination is None
    assert [line for line in said if "point-the-application" in line]
    assert [line for line in said if "cluster.example.org" in line]
    assert (home / "migration.toml").read_text() == PROJECT


def test_a_switch_may_take_long_under_kills(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "migration.toml").write_text(PROJECT)
    config, _ = copy(wanted(tmp_path / "home" / "migration.toml"), tmp_path / "copy", SIDES, patient=True)
    patient = tomllib.loads(config.read_text())["cutover"]
    assert (patient["pause_s"], patient["verify_s"]) == (3600.0, 600.0)


def test_ways_round_a_fence_that_throw_away_servers_have_are_accepted_beside_the_users(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    text = PROJECT.replace("[cutover]\n", '[cutover]\naccepted_ways = ["cascade shop.a"]\n')
    assert text != PROJECT
    (tmp_path / "home" / "migration.toml").write_text(text)
    project = wanted(tmp_path / "home" / "migration.toml")
    config, said = copy(project, tmp_path / "copy", SIDES, False, ["truncate root@localhost"])
    ways = tomllib.loads(config.read_text())["cutover"]["accepted_ways"]
    assert ways == ["cascade shop.a", "truncate root@localhost"]
    assert [line for line in said if "truncate root@localhost" in line]
    config, said = copy(project, tmp_path / "without", SIDES, patient=False)
    assert tomllib.loads(config.read_text())["cutover"]["accepted_ways"] == ["cascade shop.a"]
    assert not [line for line in said if "truncate" in line]


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ('kind = "mariadb"', 'kind = "oracle"', "target.kind: 'oracle'"),
        ('database = "shop"\n', "", "source.database: None"),
        ('user = "root"', "user = 3", "target.user: 3"),
    ],
)
def test_a_project_that_does_not_say_which_database_is_refused(
    before: str, after: str, where: str, tmp_path: Path
) -> None:
    file = tmp_path / "migration.toml"
    file.write_text(PROJECT.replace(before, after))
    with pytest.raises(ConfigError) as refused:
        wanted(file)
    assert refused.value.where == where


def test_logins_of_mysql_have_no_password_for_its_driver_sends_none_without_tls(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    text = PROJECT.replace('kind = "postgresql"', 'kind = "mysql"')
    (tmp_path / "home" / "migration.toml").write_text(text)
    sides = {**SIDES, "old": Database("mysql", "127.0.0.1", 20001, "shop", "root")}
    config, _ = copy(wanted(tmp_path / "home" / "migration.toml"), tmp_path / "copy", sides, patient=False)
    document = tomllib.loads(config.read_text())
    assert not [name for section in ("source", "back") for name in document[section] if "password" in name]
    assert (password_of("mysql"), bool(password_of("mariadb"))) == ("", True)
