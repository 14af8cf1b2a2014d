"""A row whose foreign key points at nothing is named so that people can find it, also by a binary key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration

KEY, NOWHERE = b"\x00\xff'k", b"\xfe\x0a\x80"


@pytest.fixture(params=["new_pg", "new_maria", "new_mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def rows(*values: tuple[bytes, bytes]) -> pa.Table:
    ids, points = zip(*values, strict=True)
    return pa.table({"id": pa.array(ids, pa.binary()), "up": pa.array(points, pa.binary())})


def test_binary_keys_are_hexadecimal_digits_and_numbers_stay_numbers(new: Database) -> None:
    postgres = new.kind == "postgresql"
    binary = "bytea" if postgres else "varbinary(8)"
    # deferrable, or with our keys unchecked, the row is found by the query before the commit
    deferred = "DEFERRABLE INITIALLY DEFERRED" if postgres else ""
    statements = [
        f"CREATE TABLE parent (id {binary} PRIMARY KEY, number int UNIQUE)",
        f"CREATE TABLE child (id {binary} PRIMARY KEY, up {binary},"
        f" CONSTRAINT to_parent FOREIGN KEY (up) REFERENCES parent (id) {deferred})",
        "CREATE TABLE counted (id int PRIMARY KEY, number int,"
        f" CONSTRAINT to_number FOREIGN KEY (number) REFERENCES parent (number) {deferred})",
    ]
    bench: Any = target_bench.bench if postgres else target_bench_mysql.bench
    with bench(new, *statements) as it:
        with pytest.raises(TargetError, match="points at a row of") as caught:
            it.apply(it.part("child", after=rows((KEY, NOWHERE))))
        prefix, end = ("\\x", str.lower) if postgres else ("0x", str.upper)
        assert f"id='{prefix}{end('00ff276b')}'" in caught.value.where
        assert f"up='{prefix}{end('fe0a80')}'" in caught.value.cause
        numbers = pa.table({"id": pa.array([7], pa.int32()), "number": pa.array([8], pa.int32())})
        with pytest.raises(TargetError, match="points at a row of") as caught:
            it.apply(it.part("counted", after=numbers))
        assert "id='7'" in caught.value.where
        assert "number='8'" in caught.value.cause
