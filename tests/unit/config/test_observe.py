"""Where metrics may be asked for: off unless set, on loopback alone unless somebody asks who asks."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from migrator.config.project import Settings, load
from migrator.config.way_back import way_back
from migrator.errors import ConfigError
from migrator.model.observed.bounds import Bounds
from tests.unit.config.test_config import GOOD, write

CERTIFICATES = Path(__file__).parents[2] / "certificates"
PASSWORDS = {"SOURCE_PASSWORD": "x", "TOKEN": "abc", "CONTROL": "do", "EMPTY": "", "BLANK": "a b"}
TLS = f'tls_cert = "{CERTIFICATES}/server.pem"\ntls_key = "{CERTIFICATES}/server.pem"\n'
CLIENTS = f'{TLS}tls_client_ca = "{CERTIFICATES}/ca.pem"\n'


def settings(folder: Path, *lines: str) -> Settings:
    return load(write(folder, "\n".join([GOOD, "[observe]", *lines])), PASSWORDS)


def test_it_is_off_unless_set(tmp_path: Path) -> None:
    assert load(write(tmp_path, GOOD), PASSWORDS).observe.there is None
    assert settings(tmp_path).observe.there is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.3.4.5"])
def test_on_loopback_nothing_more_is_needed(tmp_path: Path, host: str) -> None:
    there = settings(tmp_path, f'listen = "{host}:9464"').observe.there
    assert there is not None
    assert (there.host, there.port) == (host.strip("[]"), 9464)
    assert there.url == f"http://{host}:9464"


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "db.example.org"])
def test_elsewhere_a_token_or_client_certificates_are_needed(tmp_path: Path, host: str) -> None:
    listen = f'listen = "{host}:9464"'
    with pytest.raises(ConfigError, match=r"observe\.listen: ") as caught:
        settings(tmp_path, listen)
    assert "without a token or a certificate" in str(caught.value)
    assert "listen at 127.0.0.1, or name a token" in str(caught.value)
    with pytest.raises(ConfigError, match=r"observe\.listen"):
        settings(tmp_path, listen, TLS)
    there = settings(tmp_path, listen, 'token_env = "TOKEN"').observe.there
    assert there is not None
    assert there.token == "abc"
    assert "abc" not in repr(there)
    assert settings(tmp_path, listen, CLIENTS).observe.there is not None


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('listen = "9464"', "is no address: write host:port"),
        ('listen = "127.0.0.1:99999"', "is no address"),
        ('listen = "http://127.0.0.1:1"', "is no address"),
        ('token_env = "EMPTY"', "a token is ASCII"),
        ('token_env = "BLANK"', "a token is ASCII"),
        ('token_env = "NONE"', "the environment has no variable NONE"),
        ('token = "abc"', "must not stand in this file"),
        ('tls_cert = "none.pem"', "no file that can be read"),
        (f'tls_key = "{CERTIFICATES}/server.pem"', "observe.tls_cert: a certificate and its key go together"),
        ('log_format = "xml"', "'xml' is none of text, json"),
        ("log_bytes = 10", "10 is less than 65536"),
        ("max_lag_s = 0", "0 is not above 0"),
        ("stalled_s = -1", "observe.stalled_s: -1 is not above 0"),
        ("least_disk_bytes = 0", "observe.least_disk_bytes: 0 is not above 0"),
        ("hot_share = 1.5", "observe.hot_share: 1.5 is a share, and above 1"),
        ('on_event = "https:///x"', "it names no host"),
        (f'tls_client_ca = "{CERTIFICATES}/ca.pem"', "clients show certificates in TLS only"),
        (
            'token_env = "TOKEN"\ncontrol_token_env = "TOKEN"',
            "observe.control_token_env: it is the token that lets read",
        ),
        ('control_token_env = "BLANK"', "observe.control_token_env: a token is ASCII"),
        ('control_token = "abc"', "must not stand in this file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, lines: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, lines)
    assert problem in str(caught.value)
    assert "'abc'" not in str(caught.value)


def test_the_way_back_listens_elsewhere_or_nowhere(tmp_path: Path) -> None:
    assert way_back(settings(tmp_path, 'listen = "127.0.0.1:9464"')).observe.there is None
    back = way_back(settings(tmp_path, 'reverse_listen = "127.0.0.1:9465"')).observe.there
    assert back is not None
    assert back.port == 9465
    lines = ('reverse_listen = "127.0.0.1:9465"', 'control_token_env = "CONTROL"')
    turned = way_back(settings(tmp_path, *lines)).observe
    assert turned.there is not None
    assert (turned.there.control, turned.at("127.0.0.1:0").control) == (None, None), "it dumps nothing"


def test_a_command_may_choose_another_address_with_the_same_guard(tmp_path: Path) -> None:
    plain = settings(tmp_path, 'listen = "127.0.0.1:9464"').observe
    assert plain.at("127.0.0.1:0").port == 0
    with pytest.raises(ConfigError, match=r"can't be served at '0\.0\.0\.0:9464'") as caught:
        plain.at("0.0.0.0:9464")
    assert caught.value.where == "--listen"
    assert settings(tmp_path, 'token_env = "TOKEN"').observe.at("0.0.0.0:9464").token == "abc"
    with pytest.raises(ConfigError, match="can't be served at 'here'"):
        plain.at("here")


def test_requests_are_permitted_by_a_token_of_their_own_that_nobody_can_read_on_its_way(
    tmp_path: Path,
) -> None:
    assert settings(tmp_path, 'listen = "127.0.0.1:9464"').observe.guard.control is None
    control = 'control_token_env = "CONTROL"'
    there = settings(tmp_path, 'listen = "127.0.0.1:9464"', control).observe.there
    assert there is not None
    assert (there.token, there.control, "do" in repr(there).split("'")) == (None, "do", False)
    elsewhere = ('listen = "10.0.0.1:9464"', 'token_env = "TOKEN"', control)
    with pytest.raises(ConfigError, match="control_token could be read on its way"):
        settings(tmp_path, *elsewhere)
    there = settings(tmp_path, *elsewhere, TLS).observe.there
    assert there is not None
    assert there.control == "do"
    with pytest.raises(ConfigError, match="without a token or a certificate"):
        settings(tmp_path, 'listen = "10.0.0.1:9464"', control, TLS)


def test_the_bounds_of_the_page_are_settings_and_each_bound_is_one(tmp_path: Path) -> None:
    assert settings(tmp_path, "").observe.bounds == Bounds()
    names = [one.name for one in fields(Bounds)]
    lines = [
        f"{name} = {2000 + place if name.endswith('bytes') else (1 + place) / 10}"
        for place, name in enumerate(names)
    ]
    found = settings(tmp_path, "\n".join(lines)).observe.bounds
    assert len({getattr(found, name) for name in names}) == len(names), "none is another's"
    assert [getattr(found, name) != getattr(Bounds(), name) for name in names].count(True) >= len(names) - 1
