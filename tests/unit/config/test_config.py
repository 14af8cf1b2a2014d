"""migration.toml: what is right is read, and everything that is wrong is named at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.config.project import load
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


def test_columns_of_postgresql_may_travel_as_text(tmp_path: Path) -> None:
    text = GOOD.replace('host = "db1"', 'text_columns = { prices = ["amount"], "a.b" = ["x", "y"] }')
    right = text.replace('kind = "mariadb"', 'kind = "postgresql"')
    chosen = load(write(tmp_path, right), {"SOURCE_PASSWORD": "x"}).text_columns
    assert chosen == {"prices": {"amount"}, "a.b": {"x", "y"}}
    with pytest.raises(ConfigError, match="text_columns: it is for sources on PostgreSQL"):
        load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"})
    for wrong in ('["prices.amount"]', "{ prices = true }", "{ prices = [1] }"):
        with pytest.raises(ConfigError, match="text_columns"):
            load(write(tmp_path, right.replace('{ prices = ["amount"], "a.b" = ["x", "y"] }', wrong)), {})


def test_a_schema_is_refused_where_databases_have_none(tmp_path: Path) -> None:
    text = GOOD.replace('host = "db1"', 'schema = "shop"')
    with pytest.raises(ConfigError, match=r"source\.schema: databases have schemas on PostgreSQL only"):
        load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"})
    right = text.replace('kind = "mariadb"', 'kind = "postgresql"')
    assert load(write(tmp_path, right), {"SOURCE_PASSWORD": "x"}).source.schema == "shop"


def test_postgresql_may_place_chunks_by_messages(tmp_path: Path) -> None:
    text = GOOD.replace('kind = "mariadb"', 'kind = "postgresql"').replace(
        'host = "db1"', 'placement = "message"'
    )
    assert load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"}).placement == "message"


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    settings = load(write(tmp_path, GOOD), {"SOURCE_PASSWORD": "geheim"})
    assert "geheim" not in repr(settings)
    assert "geheim" not in settings.source.url()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("[capture]", "[captur]"), "unknown section [captur]"),
        (("chunk_rows = 1000", "chunk_rowz = 1000"), "capture.chunk_rowz: unknown setting"),
        (("chunk_rows = 1000", 'chunk_rows = "many"'), "capture.chunk_rows: 'many' is not a whole number"),
        (("chunk_rows = 1000", "chunk_rows = 0"), "capture.chunk_rows: 0 is not above 0"),
        (("chunk_rows = 1000", "dump_share = 1.5"), "capture.dump_share: it is a share of the time"),
        (("chunk_rows = 1000", "dump_share = 0"), "capture.dump_share: 0 is not above 0"),
        (("chunk_rows = 1000", "chunk_target_s = inf"), "capture.chunk_target_s: inf is not a number"),
        (('kind = "mariadb"', 'kind = "oracle"'), "source.kind: 'oracle' is none of"),
        (('name = "shop"', 'name = "My Shop"'), "migration.name"),
        (('user = "writer"', ""), "[target] needs the setting 'user'"),
        (("SOURCE_PASSWORD", "NOT_SET"), "the environment has no variable NOT_SET"),
        (("SOURCE_PASSWORD", "EMPTY"), "the variable EMPTY is there and empty; set it"),
        (('user = "writer"', 'user = "writer"\nsilence_s = 0'), "target.silence_s: 0 is not above 0"),
        (
            ("[capture]", '[capture]\nchunk_reading = "workers"'),
            "capture.chunk_reading: 'workers' is none of driver, executors",
        ),
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
        (
            ("[capture]", '[cutover]\nhook = "http://h:99999/x"\n[capture]'),
            "cutover.hook: 'http://h:99999/x' can't be asked",
        ),
    ],
)
def test_a_problem_is_named(tmp_path: Path, change: tuple[str, str], names: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, GOOD.replace(*change)), {"SOURCE_PASSWORD": "x", "EMPTY": ""})
    assert names in str(caught.value)


def test_all_problems_come_together_with_their_lines(tmp_path: Path) -> None:
    text = GOOD.replace("chunk_rows", "chunk_rowz").replace('"mariadb"', '"oracle"')
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text), {"SOURCE_PASSWORD": "x"})
    assert "line 18: capture.chunk_rowz" in caught.value.where
    assert "line 6: source.kind" in caught.value.where
    lines = caught.value.lines()
    assert [line.split(": ", 2)[:2] for line in lines[1:3]] == [
        ["where", "line 18"],
        ["  line 6", "source.kind"],
    ]
    assert "; line 6: source.kind" in str(caught.value), "one line in a log"


def test_no_file_and_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match="no valid TOML"):
        load(write(tmp_path, "[migration"))


COORDINATION = """
[coordination]
hosts = "zk1:2181, zk2:2181"
path = "/teams/data"
session_s = 8
auth = "digest"
user = "mig"
password_env = "ZK_PASSWORD"
tls = "verify-full"
tls_ca = "ca.pem"
"""


def with_coordination(folder: Path, text: str = COORDINATION) -> Path:
    (folder / "ca.pem").write_text("ca")
    (folder / "zk.password").write_text("geheim\n")
    return write(folder, GOOD + text)


def test_an_ensemble_is_read_and_its_password_never_shown(tmp_path: Path) -> None:
    environment = {"SOURCE_PASSWORD": "x", "ZK_PASSWORD": "geheim"}
    settings = load(with_coordination(tmp_path), environment).coordination
    assert settings is not None
    assert (settings.hosts, settings.root("shop")) == ("zk1:2181,zk2:2181", "/teams/data/shop")
    assert settings.tls_ca == str(tmp_path / "ca.pem")
    assert settings.password == "geheim"
    assert "geheim" not in repr(settings)
    assert not settings.shared_event_log
    in_file = COORDINATION.replace('password_env = "ZK_PASSWORD"', 'password_file = "zk.password"')
    settings = load(with_coordination(tmp_path, in_file), environment).coordination
    assert settings is not None
    assert settings.password == "geheim"
    assert load(write(tmp_path, GOOD), environment).coordination is None


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (('hosts = "zk1:2181, zk2:2181"', ""), "coordination.hosts: [coordination] needs it"),
        (("zk1:2181, ", "zk1, "), "coordination.hosts: 'zk1' is not host:port"),
        (("zk1:2181, ", "zk1:99999, "), "coordination.hosts: 'zk1:99999' is not host:port"),
        (('"/teams/data"', '"teams"'), "coordination.path: 'teams' is not /name"),
        (('"/teams/data"', '"/teams/../x"'), "coordination.path: '/teams/../x' is not /name"),
        (("session_s = 8", "session_s = 0.5"), "coordination.session_s: 0.5 is not within 1 and 300"),
        (("session_s = 8", 'session_s = "long"'), "coordination.session_s: 'long' is not a number"),
        (('"digest"', '"kerberos"'), "coordination.auth: 'kerberos' is none of"),
        (('"digest"', '"none"'), "coordination.auth: a login is given"),
        (('user = "mig"', ""), 'coordination.user: auth = "digest" needs it'),
        (('"mig"', '"m:g"'), "coordination.user: 'm:g': a user's name has no colon"),
        (('password_env = "ZK_PASSWORD"', ""), "coordination.password_env: auth = "),
        (("ZK_PASSWORD", "NOT_SET"), "coordination.password_env: the environment has no variable NOT_SET"),
        (
            ('password_env = "ZK_PASSWORD"', 'password_file = "no"'),
            "coordination.password_file: the file can't be",
        ),
        (("tls = ", 'password_file = "zk.password"\ntls = '), "password_file: password_env is set as well"),
        (
            ('password_env = "ZK_PASSWORD"', 'password = "x"'),
            "coordination.password: a password must not stand",
        ),
        (('"verify-full"', '"on"'), "coordination.tls: 'on' is none of"),
        (('"verify-full"', '"disable"'), 'coordination.tls_ca: tls = "disable" would not use it'),
        (('"ca.pem"', '"gone.pem"'), "gone.pem is no file that can be read"),
        (("tls_ca =", "tls_cert ="), "coordination.tls_key: certificate and key of a client go together"),
    ],
)
def test_each_wrong_setting_of_an_ensemble_is_named(
    tmp_path: Path, change: tuple[str, str], names: str
) -> None:
    file = with_coordination(tmp_path, COORDINATION.replace(*change))
    with pytest.raises(ConfigError) as caught:
        load(file, {"SOURCE_PASSWORD": "x", "ZK_PASSWORD": "geheim"})
    assert names in caught.value.where
    assert "geheim" not in str(caught.value)
