"""``migrator events`` to an API: what is refused at once, and remedies that are followed to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.config.event_outputs import EventOptions, http_settings, kafka_settings
from migrator.errors import ConfigError
from tests.contract.outputs.api_server import ApiServer, Inbox
from tests.unit.cli.test_events_command import Migration


@pytest.fixture
def migration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Migration:
    return Migration(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    running = ApiServer()
    yield running
    running.close()


def places(inbox: Inbox) -> list[tuple[int, int]]:
    sources = [json.loads(line)["source"] for line in inbox.lines()]
    return [(source["segment"], source["number"]) for source in sources]


def test_an_api_gets_what_it_lacks_with_the_token(migration: Migration, server: ApiServer) -> None:
    url, inbox = server.inbox()
    (migration.folder / "token").write_text("swordfish\n")
    token = ("--format", "http", "--token-file", str(migration.folder / "token"))
    migration.append(1, 2)
    code, said = migration.events(*token, output=url)
    assert (code, "wrote 2 events, up to segment 2" in said) == (0, True)
    migration.append(3)
    assert "wrote 1 events" in migration.events(*token, output=url)[1]
    assert places(inbox) == [(1, 0), (2, 0), (3, 0)]
    assert {headers["authorization"] for _, headers, _ in inbox.requests} == {"Bearer swordfish"}
    kept = [path.read_bytes() for path in (migration.log / "readers").iterdir()]
    assert not any(b"swordfish" in content for content in kept)


def test_a_moved_api_goes_on_by_its_former_name(migration: Migration, server: ApiServer) -> None:
    (old, first), (new, second) = server.inbox(), server.inbox()
    migration.append(1)
    assert migration.events("--format", "http", output=old)[0] == 0
    migration.append(2)
    first.replies = [(308, {"Location": new}, b"")]
    said = migration.refused("--format", "http", output=old)
    assert new in said
    assert "--name" in said
    assert migration.events("--format", "http", "--name", old, output=new)[0] == 0
    assert (places(first), places(second)) == ([(1, 0)], [(2, 0)])


def test_a_batch_that_is_too_large_goes_with_smaller_bounds(migration: Migration, server: ApiServer) -> None:
    url, inbox = server.inbox()
    migration.append(1, 2, 3)
    inbox.replies = [(413, {}, b"at most 500 bytes")]
    assert "--batch-bytes" in migration.refused("--format", "http", output=url)
    assert migration.events("--format", "http", "--batch-bytes", "500", output=url)[0] == 0
    assert places(inbox) == [(1, 0), (2, 0), (3, 0)]
    assert len(inbox.batches) == 3


def test_forgotten_it_begins_anew_under_other_keys(migration: Migration, server: ApiServer) -> None:
    url, inbox = server.inbox()
    migration.append(1)
    assert migration.events("--format", "http", output=url)[0] == 0
    assert migration.events("--format", "http", "--forget", output=url)[0] == 0
    assert not list((migration.log / "readers").glob("*.batch"))
    assert migration.events("--format", "http", output=url)[0] == 0
    assert places(inbox) == [(1, 0)] * 2
    assert len({one.key for one in inbox.batches}) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (EventOptions("http", "ftp://h/x"), "https://host/path"),
        (EventOptions("http", "https://h:port/x"), "https://host/path"),
        (EventOptions("http", "https://me:hidden@h/x"), "a login must not stand"),
        (EventOptions("http", "http://h/x", token_env="T"), "travel unencrypted"),
        (EventOptions("http", "https://h/x", token_env="NOT"), "no variable NOT"),
        (EventOptions("http", "https://h/x", token_file="/nowhere"), "can't be read"),
        (EventOptions("http", "https://h/x", token_env="BAD"), "printable ASCII"),
        (EventOptions("http", "https://h/x", headers=Path("/nowhere")), "can't be read"),
        (EventOptions("http", "https://h/x", ca=Path("/nowhere")), "no PEM file"),
    ],
)
def test_options_that_cannot_be_used_are_named(options: EventOptions, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        http_settings(options, {"T": "hidden", "BAD": "hidden\n"})
    assert said in caught.value.cause
    assert "hidden" not in str(caught.value)


def test_headers_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("# who asks\nX-Team: shop \n\nX-Key:hidden\n")
    found = http_settings(EventOptions("http", "https://h/x", headers=file), {})
    assert found.headers == {"X-Team": "shop", "X-Key": "hidden"}
    assert "hidden" not in repr(found)
    file.write_text("hidden\nContent-Type: x\n")
    with pytest.raises(ConfigError) as caught:
        http_settings(EventOptions("http", "https://h/x", headers=file), {})
    assert "line 1 isn't `Name: value`" in caught.value.cause
    assert "Content-Type is set by the migrator" in caught.value.cause
    assert "hidden" not in str(caught.value)


def test_properties_of_kafka_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "client"
    file.write_text("security.protocol = SASL_SSL\n# x\nsasl.password=a=b\n")
    found = kafka_settings(EventOptions("kafka", "a:1,[::1]:2", client=file), "m")
    assert (found.prefix, found.client) == ("m", {"security.protocol": "SASL_SSL", "sasl.password": "a=b"})
    assert "a=b" not in repr(found)
    file.write_text("hidden\ntransactional.id=x\n")
    with pytest.raises(ConfigError) as caught:
        kafka_settings(EventOptions("kafka", "a", client=file, prefix="a b"), "m")
    for part in ("--prefix", "--output", "line 1 isn't", "transactional.id is set"):
        assert part in caught.value.cause
    assert "hidden" not in str(caught.value)


def test_a_transaction_is_not_open_for_hours(migration: Migration) -> None:
    assert "give at most 60" in migration.refused("--format", "kafka", "--commit-every", "61", output="b:1")
