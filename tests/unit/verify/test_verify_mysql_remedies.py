"""What the judge says to do where MySQL or MariaDB refuses a statement depends on why."""

from __future__ import annotations

import pymysql
import pytest

from verify.readers.mysql.session import remedy_for


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (1142, "GRANT SELECT"),
        (1146, "vanished"),
        (1054, "vanished"),
        (1205, "lock"),
        (2013, "connection was lost"),
        (1305, "report it"),  # a function or operator that isn't there is no missing right
        (1064, "report it"),
    ],
)
def test_a_missing_right_is_named_only_where_one_is_missing(code: int, says: str) -> None:
    remedy = remedy_for(pymysql.err.OperationalError(code, "in any words"))
    assert says in remedy
    assert ("GRANT" in remedy) == (code == 1142)
