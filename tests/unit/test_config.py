"""migration.toml: what is right is read, and everything that is wrong is named at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.config import load
from migrator.errors import ConfigError

GOOD = """
[migration]
name = "shop"

[source]
kind = "mariadb"
host = "db1"
database = "old"
user = "reader"
password_env = "SOURCE_PASSWORD"

[target]
kind = "postgresql"
database = "new"
user = "writer"

[capture]
chunk_rows = 1000
linger_s = 1

[spark]
master = "local[1]"
conf = { "spark.driver.memory" = "1g" }
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "migration.toml"
    file.write_text(text)
    return file


def test_a_good_file_is_read_with_defaults(tmp_path: Path) -> None:
    settings = load(write(tmp_path, GOOD), {"SOURCE_PASSWORD": "geheim"})
    assert (settings.source.port, settings.target.port) == (3306, 5432)
    assert settings.source.password == "geheim"
    assert settings.mapping == tmp_path / "mapping.py"
    assert (settings.capture.chunk_rows, settings.capture.linger_s) == (1000, 1)
    assert settings.streaming
    assert settings.spark.conf == {"spark.driver.memory": "1g"}


def test_streaming_of_large_transactions_can_be_turned_off(tmp_path: Path) -> None:
    text = GOOD.replace('host = "db1"', "streaming = false")
    assert not load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"}).streaming


def test_postgresql_may_place_chunks_by_messages(tmp_path: Path) -> None:
    text = GOOD.replace('kind = "mariadb"', 'kind = "postgresql"').replace(
        'host = "db1"', 'placement = "message"'
    )
    assert load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"}).placement == "message"


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    settings = load(write(tmp_path, GOOD), {"SOURCE_PASSWORD": "geheim"})
    assert "geheim" not in repr(settings)
    assert "geheim" not in settings.source.address()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("[capture]", "[captur]"), "unknown section [captur]"),
        (("chunk_rows = 1000", "chunk_rowz = 1000"), "capture.chunk_rowz: unknown setting"),
        (("chunk_rows = 1000", 'chunk_rows = "many"'), "capture.chunk_rows: 'many' is not a whole number"),
        (("chunk_rows = 1000", "chunk_rows = 0"), "capture.chunk_rows: 0 is not above 0"),
        (('kind = "mariadb"', 'kind = "oracle"'), "source.kind: 'oracle' is none of"),
        (('name = "shop"', 'name = "My Shop"'), "migration.name"),
        (('user = "writer"', ""), "[target] needs the setting 'user'"),
        (("SOURCE_PASSWORD", "NOT_SET"), "the environment has no variable NOT_SET"),
        (('user = "writer"', 'user = "writer"\nsilence_s = 0'), "target.silence_s: 0 is not above 0"),
        (
            ('host = "db1"', 'placement = "message"'),
            "source.placement: 'message' is none of witness, watermark",
        ),
        (('host = "db1"', 'streaming = "no"'), "source.streaming: 'no' is not true or false"),
        (
            ('user = "reader"', 'user = "reader"\nlog = "change_tables"'),
            "change tables are read on PostgreSQL only",
        ),
        (
            ('kind = "mariadb"', 'kind = "postgresql"\nlog = "change_tables"\nplacement = "watermark"'),
            "source.placement: change tables need no watermarks",
        ),
        (
            ('user = "reader"', 'user = "reader"\nlog = "wal"'),
            "source.log: 'wal' is none of server, change_tables",
        ),
        (('user = "reader"', 'user = "reader"\nforget_changes = true'), "source.forget_changes"),
        (('user = "reader"', 'user = "reader"\nforget_changes = 1'), "1 is not true or false"),
        (('host = "db1"', "host = true"), "source.host: True is not a text"),
    ],
)
def test_a_problem_is_named(tmp_path: Path, change: tuple[str, str], names: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, GOOD.replace(*change)), {"SOURCE_PASSWORD": "x"})
    assert names in str(caught.value)


def test_all_problems_come_together_with_their_lines(tmp_path: Path) -> None:
    text = GOOD.replace("chunk_rows", "chunk_rowz").replace('"mariadb"', '"oracle"')
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"})
    assert "line 18: capture.chunk_rowz" in caught.value.where
    assert "line 6: source.kind" in caught.value.where


def test_no_file_and_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match="no valid TOML"):
        load(write(tmp_path, "[migration"))
