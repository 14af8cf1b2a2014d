"""Values larger than what a server's functions, statements or packets may hold arrive, or are refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.errors import SourceError, TargetError, VerifyError
from migrator.model.chunk import ChunkRequest
from tests import servers
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import max_allowed_packet, source_of
from tests.integration.target_bench_mysql import bench, ints
from tests.servers import Database
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.mysql.session import open_session, whole_rows
from verify.readers.mysql.target import MySQLTarget
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration

MIB = 1 << 20


def server_of(database: Database) -> ServerSettings:
    return ServerSettings(servers.server_of(database))


@pytest.fixture
def large(spare_database: Database) -> Iterator[Database]:
    """Values of a MiB and less on a server whose packets are as small since."""
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, b longblob, v longtext CHARACTER SET latin1)",
        f"INSERT INTO t VALUES (1, REPEAT(X'ff', {MIB * 3 // 4}), REPEAT('\u00e4', {MIB * 3 // 4})), (2, NULL, NULL)",
    )
    with max_allowed_packet(spare_database, MIB):
        yield spare_database


def test_the_judge_reads_values_whose_digits_are_more_than_a_packet(
    engine: BinlogEngine, large: Database, tmp_path: Path
) -> None:
    target = MySQLTarget(server_of(large), "test").snapshot(["t"], tmp_path).tables["t"]
    [first, second] = pq.read_table(target.path).to_pylist()
    assert (first["b"], first["v"]) == ("ff" * (MIB * 3 // 4), "\u00e4" * (MIB * 3 // 4))
    assert (second["b"], second["v"]) == (None, None)
    source = (MySQLSource if engine.kind == "mysql" else MariaDBSource)(server_of(large))
    with source.chunks("t") as chunks:
        assert chunks.read("1 = 1", tmp_path / "source.parquet")[1] == 2
    [first, second] = pq.read_table(tmp_path / "source.parquet").to_pylist()
    assert (len(first["b"]), len(first["v"]), second["b"]) == (MIB * 3 // 4, MIB * 3 // 4, None)


def test_a_value_that_a_server_gives_up_is_no_null_to_the_judge(large: Database) -> None:
    given_up = "SELECT CONCAT(b, b) FROM t WHERE id = 1"
    assert large.query(given_up) == [(None,)]  # what it would be without a look at the warnings
    with open_session(server_of(large), "target") as session:
        with pytest.raises(VerifyError, match="max_allowed_packet") as refused:
            whole_rows(session, given_up)
        assert "SET GLOBAL max_allowed_packet" in refused.value.remedy
        assert whole_rows(session, "SELECT id FROM t ORDER BY id") == [("1",), ("2",)]


def test_a_chunk_with_a_value_that_the_server_cannot_print_is_refused_by_name(
    engine: BinlogEngine, spare_database: Database
) -> None:
    """MySQL gives an empty text for JSON that is larger than a packet, with a warning; MariaDB's JSON is a text."""
    large = json.dumps({"a": "x" * (MIB * 3 // 2)})
    spare_database.execute("CREATE TABLE j (id int PRIMARY KEY, v json)")
    with spare_database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO j VALUES (1, %s)", (large,))
    source = source_of(spare_database)
    [schema] = engine.catalog(source).tables(["j"])
    with max_allowed_packet(spare_database, MIB):
        reader = engine.chunk_reader(source)
        request = ChunkRequest(1, schema.id, None, 10)
        if engine.kind == "mariadb":
            assert reader.read(request, schema).rows["v"].to_pylist() == [large]
        else:
            assert spare_database.query("SELECT v FROM j") == [("",)]
            with pytest.raises(SourceError, match="max_allowed_packet") as refused:
                reader.read(request, schema)
            assert "SET GLOBAL max_allowed_packet" in refused.value.remedy
        reader.close()


@pytest.mark.parametrize("many", [1, 400])
def test_a_row_that_fits_no_packet_of_the_target_is_refused_with_its_key_and_the_setting(
    engine: BinlogEngine, spare_database: Database, many: int
) -> None:
    """A statement that is too large would cut the connection, for ever."""
    table = "CREATE TABLE t (id int PRIMARY KEY, b longblob)"
    with max_allowed_packet(spare_database, MIB), bench(spare_database, table) as it:
        small = [b"x" * (MIB // 4)] + [b"y"] * (many - 1)
        it.apply(
            it.part("t", after=pa.table({**ints("id", *range(many)), "b": pa.array(small, pa.binary())}))
        )
        assert spare_database.query("SELECT COUNT(*), MAX(LENGTH(b)) FROM t") == [(many, MIB // 4)]
        rows = pa.table({**ints("id", 7), "b": pa.array([b"x" * MIB], pa.binary())})
        with pytest.raises(TargetError, match="max_allowed_packet") as refused:
            it.apply(it.part("t", after=rows))
        assert "id=7" in refused.value.where or "id)=(7" in refused.value.where
        assert "SET GLOBAL max_allowed_packet" in refused.value.remedy
        assert not refused.value.retryable
    with bench(spare_database, "DROP TABLE t", table) as it:
        it.apply(it.part("t", after=rows))  # as the remedy says
        assert spare_database.query("SELECT id, LENGTH(b) FROM t") == [(7, MIB)]
