"""Passwords of migration.toml: where they may be, and that none is repeated in a message."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from migrator.config.project import Settings, load
from migrator.errors import ConfigError

LITERAL = "gEheim-Wort/7%"
GOOD = """
[migration]
name = "shop"
[source]
kind = "postgresql"
database = "old"
user = "reader"
{source}
[target]
kind = "postgresql"
database = "new"
user = "writer"
{target}
"""


def settings_with(folder: Path, source: str = "", target: str = "", **environment: str) -> Settings:
    file = folder / "migration.toml"
    file.write_text(GOOD.format(source=source, target=target))
    return load(file, environment)


def refused(folder: Path, source: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        settings_with(folder, source, **environment)
    return str(caught.value)


def test_a_password_is_read_from_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "new.password").write_text(f"{LITERAL}\n")
    found = settings_with(
        tmp_path, 'password_env = "OLD"', 'password_file = "new.password"', OLD=f" {LITERAL} "
    )
    assert (found.source.password, found.target.password) == (f" {LITERAL} ", LITERAL)
    assert LITERAL not in repr(found)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (f'password = "{LITERAL}"', "source.password: a password must not stand in this file: take it out"),
        (f'passwd = "{LITERAL}"', "source.passwd: a password must not stand in this file"),
        (
            f'password_env = "{LITERAL}"',
            "source.password_env: it must be the name of an environment variable",
        ),
        (f'password_file = "{LITERAL}"', "source.password_file: the file can't be read (No such file"),
        ("password_env = 4711", "source.password_env: it is not a text"),
        ('password_keyring = "geheim"', "source.password_keyring: it must be service/login"),
        (f'password_env = "OLD"\npassword_file = "{LITERAL}"', "password_file: password_env is set as well"),
    ],
)
def test_what_is_no_place_of_a_password_is_refused_unseen(tmp_path: Path, source: str, says: str) -> None:
    told = refused(tmp_path, source, OLD="x")
    assert says in told
    assert LITERAL not in told
    assert "4711" not in told
    assert "geheim" not in told


def test_a_wrong_value_of_another_setting_is_shown(tmp_path: Path) -> None:
    """The control of the test above: it is not that values are never shown."""
    assert LITERAL in refused(tmp_path, f'tls = "{LITERAL}"')


class KeyringError(Exception):
    """As keyring.errors has it."""


def stand_in(stored: dict[tuple[str, str], str] | None) -> ModuleType:
    """A keyring that holds ``stored``, or has no backend at all (None). The real one would be this machine's
    own."""

    def get_password(service: str, login: str) -> str | None:
        if stored is None:
            raise KeyringError("No recommended backend was available.")
        return stored.get((service, login))

    module, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    module.get_password, module.errors = get_password, errors  # type: ignore[attr-defined]
    return module


def test_a_password_of_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = 'password_keyring = "migrator/old server/reader"'
    monkeypatch.setitem(sys.modules, "keyring", stand_in({("migrator/old server", "reader"): LITERAL}))
    assert settings_with(tmp_path, setting).source.password == LITERAL
    monkeypatch.setitem(sys.modules, "keyring", stand_in({}))
    assert "store it: keyring set 'migrator/old server' reader" in refused(tmp_path, setting)
    monkeypatch.setitem(sys.modules, "keyring", stand_in(None))
    assert "keyring can't be read (KeyringError): see `keyring diagnose`" in refused(tmp_path, setting)
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "pip install 'dbmigrator[keyring]'" in refused(tmp_path, setting)


def test_the_authority_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    assert "ca.pem is no file" in refused(tmp_path, 'tls_ca = "ca.pem"')
    (tmp_path / "ca.pem").write_text("ca")
    assert settings_with(tmp_path, 'tls_ca = "ca.pem"').source.tls_ca == str(tmp_path / "ca.pem")


def test_the_owner_needs_no_password_of_the_migration_nor_the_migration_the_owners(tmp_path: Path) -> None:
    server = 'kind = "mariadb"\nhost = "h"\ndatabase = "d"\nuser = "u"\n'
    file = tmp_path / "migration.toml"
    old, new = (f'{server}password_env = "{name}"\n' for name in ("OLD", "NEW"))
    text = f'[migration]\nname = "x"\n[source]\n{old}[target]\n{new}'
    file.write_text(f'{text}owner = "o"\nowner_password_env = "OWNER"\n')
    settings = load(file, {"OWNER": "s3cret"}, owner=True)
    assert settings.owner is not None
    assert (settings.owner.user, settings.owner.password) == ("o", "s3cret")
    assert load(file, {"OLD": "a", "NEW": "b"}).owner is None
    with pytest.raises(ConfigError, match="no variable OWNER"):
        load(file, {"OLD": "a", "NEW": "b"}, owner=True)
    with pytest.raises(ConfigError, match="no variable OLD"):
        load(file, {"OWNER": "s3cret"})
    file.write_text(text)
    owner = load(file, {"NEW": "b"}, owner=True).owner
    assert owner is not None
    assert (owner.user, owner.password) == ("u", "b")
