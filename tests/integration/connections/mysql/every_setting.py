"""Random values of every setting of a session that a server can have for all, as its own lists describe them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from pymysql.err import MySQLError

from tests.integration.connections.mysql.mysql_settings import HOSTILE, settable
from tests.servers import MariaDBServer

LEFT_ALONE = {
    **dict.fromkeys(
        (
            "connection_memory_limit", "global_connection_memory_tracking", "max_session_mem_used",
            "max_tmp_session_space_usage", "parser_max_mem_size", "tmp_disk_table_size", "max_sp_recursion_depth",
            "max_user_connections", "max_allowed_packet", "net_buffer_length",
        ),
        "a limit that an administrator means: what exceeds it is refused by name",
    ),
    **dict.fromkeys(
        ("binlog_format", "binlog_row_image", "binlog_row_value_options", "server_id", "gtid_domain_id"),
        "what preflight asks of the log; and the test's own writer would write another one",
    ),
    "default_table_encryption": "needs a keyring",
    "system_versioning_asof": "refused by name",
    "wsrep_on": "needs a cluster",
}  # fmt: skip
"""Settings that aren't drawn, each with the reason."""
_OF_MARIADB = """
SELECT lower(variable_name), variable_type, numeric_min_value, numeric_max_value, enum_value_list, global_value
FROM information_schema.system_variables WHERE variable_scope = 'SESSION' AND read_only = 'NO' ORDER BY 1"""
_OF_MYSQL = """
SELECT lower(i.variable_name), i.min_value, i.max_value, g.variable_value
FROM performance_schema.variables_info i JOIN performance_schema.global_variables g USING (variable_name)
ORDER BY 1"""


def drawn_of_all(server: MariaDBServer, kind: str, chance: random.Random, share: float) -> dict[str, str]:
    """Setting -> a value as SQL that the server takes for all, of as many settings as the share says."""
    hostile = {**HOSTILE["both"], **HOSTILE[kind]}
    found = {}
    with server.admin.connect() as connection, connection.cursor() as cursor:
        own, _ = settable(connection)  # MySQL lists what only a server has among those of a session
        described = {name: values for name, values in _described(cursor, kind) if name in own}
        for name in sorted({*described, *hostile}):
            if name in LEFT_ALONE or chance.random() >= share:
                continue
            usual = name in hostile and (name not in described or chance.random() < 0.5)
            value = chance.choice(hostile[name]) if usual else _value(described[name], chance)
            if value is not None and _takes(cursor, name, value):
                found[name] = value
    return found


def _described(cursor: Any, kind: str) -> Iterator[tuple[str, tuple[str, list[str]]]]:
    """Name, and what values there are: a word for their kind, and the least, the greatest and the present, or all."""
    cursor.execute(_OF_MARIADB if kind == "mariadb" else _OF_MYSQL)
    for name, *rest in cursor.fetchall():
        if kind == "mariadb":
            type_, least, most, words, now = rest
            if type_ in ("ENUM", "SET") and words:
                yield name, (type_, str(words).split(","))
            elif type_ == "BOOLEAN":
                yield name, ("ENUM", ["ON", "OFF"])
            elif least is not None and most is not None:
                yield name, (type_, [str(least), str(most), str(now)])
        else:
            least, most, now = rest
            if now in ("ON", "OFF"):
                yield name, ("ENUM", ["ON", "OFF"])
            elif str(most) not in ("", "0") and str(now).lstrip("-").isdecimal():
                yield name, ("INT", [str(least), str(most), str(now)])


def _value(described: tuple[str, list[str]], chance: random.Random) -> str | None:
    kind, known = described
    if kind == "ENUM":
        return f"'{chance.choice(known)}'"
    if kind == "SET":
        return "'" + ",".join(chance.sample(known, chance.randint(0, min(4, len(known))))) + "'"
    low, high, now = (float(text) for text in known)
    high = min(high, 4 * max(now, 16.0))  # a server with all of a machine's memory tells nothing
    number = chance.choice((low, high, chance.uniform(low, max(low, high))))
    return f"{number:.3f}" if kind == "DOUBLE" else str(int(number))


def _takes(cursor: Any, name: str, value: str) -> bool:
    """Whether the server takes the value for all; it has its own again afterwards."""
    try:
        cursor.execute(f"SELECT @@GLOBAL.{name}")
        [(before,)] = cursor.fetchall()
        cursor.execute(f"SET GLOBAL {name} = {value}")
        cursor.execute(f"SET GLOBAL {name} = %s", (before,))
    except MySQLError:
        return False
    return True
