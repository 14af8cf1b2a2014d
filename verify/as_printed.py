"""Texts of types that read several texts as one value, as the target itself prints them.

``{"a"}`` and ``{a}`` are one array, ``12:00`` and ``12:00:00`` one time, ``1e2`` and ``100`` one number; the types of
extensions have rules of their own. A mapping may write any of these texts, the target prints one. So the judge asks
the target: its input function reads the mapped text, its output function prints it. Declared lengths, scales and
precisions are left out, so that nothing becomes equal by being cut. What the target can't read stays as it is, which
no value of the target's is.

Asked by Spark's Python workers, once for each text of a batch, over a connection for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from verify.mysql_session import open_session, rows_and_warnings
from verify.postgres_session import connect_postgres
from verify.settings import ServerSettings

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 500
"""Texts in a query. One that can't be read has its half asked again, and so on."""
ONE_TEXT = ("text", "varchar", "bpchar", "name", "json", "jsonb", "uuid")
"""Types of PostgreSQL every text of which is another value, or whose rules ``verify.normalise`` has."""
_OF_MARIADB = ("inet4", "inet6")
_UNREADABLE = ("22", "42601", "0A000", "54000")
"""Beginnings of the codes by which an input function refuses a text."""

Ask = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class AsPrinted:
    """One type of the target, and where it can be asked.

    Attributes:
        settings: the target. Travels in Spark's jobs; never shown.
        type: the type in the target's words, without length or precision.
    """

    settings: ServerSettings = field(repr=False)
    type: str

    def __call__(self, texts: Column) -> Column:
        """The texts as the target prints them."""

        def printed(batch: pa.Array) -> pa.Array:
            if batch.null_count == len(batch):
                return batch
            with self.asking() as ask:
                return _replaced(batch, ask)

        made: Any = arrow_udf
        return made(_typed(printed), T.StringType())(texts)  # type: ignore[no-any-return]

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        """A connection, and how to ask. Raises ``VerifyError``, ``ConnectionFailed``."""
        if self.settings.kind == "postgresql":
            with connect_postgres(self.settings) as connection:
                yield lambda texts: list(_of_postgres(connection, self.type, texts))
        else:
            with open_session(self.settings, "target") as session:
                yield lambda texts: [_of_mariadb(session, self.type, text) for text in texts]


def as_printed(settings: ServerSettings, base: str, type_: str) -> AsPrinted | None:
    """How to ask for a column's texts; None where each text is a value of its own.

    Args:
        settings: the target.
        base: the type's own name.
        type_: the type in the target's words, without length or precision.
    """
    if settings.kind == "postgresql":
        return None if base in ONE_TEXT else AsPrinted(settings, type_)
    return AsPrinted(settings, base) if base in _OF_MARIADB and settings.kind == "mariadb" else None


def _typed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """With the types by which Spark tells what to hand over: not as text, which can't be resolved where it runs."""
    import pyarrow as pa

    function.__annotations__ = {"batch": pa.Array, "return": pa.Array}
    return function


def _replaced(batch: pa.Array, ask: Ask) -> pa.Array:
    import pyarrow as pa

    texts = batch.to_pylist()
    different = list(dict.fromkeys(text for text in texts if text is not None))
    known = dict(zip(different, ask(different), strict=True))
    return pa.array([None if text is None else known[text] for text in texts], pa.string())


def _of_postgres(connection: Any, type_: str, texts: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(texts), _AT_ONCE):
        yield from _asked(connection, type_, texts[start : start + _AT_ONCE])


def _asked(connection: Any, type_: str, texts: Sequence[str]) -> list[str]:
    import psycopg

    # A parameter of no declared type goes to the type's own input function, whatever casts somebody made from text.
    each = f"pg_catalog.format('%%s', %s::{type_.replace('%', '%%')})"
    try:
        row = connection.execute(f"SELECT ARRAY[{', '.join([each] * len(texts))}]", list(texts)).fetchone()
        return list(row[0])
    except psycopg.DataError:
        refused = True
    except psycopg.Error as error:
        refused = (error.sqlstate or "").startswith(_UNREADABLE)
        if not refused:
            raise
    if len(texts) == 1:
        return list(texts)
    half = len(texts) // 2
    return [*_asked(connection, type_, texts[:half]), *_asked(connection, type_, texts[half:])]


def _of_mariadb(session: Any, type_: str, text: str) -> str:
    rows, warnings = rows_and_warnings(session, f"SELECT CAST(%s AS {type_.upper()})", (text,))
    return text if warnings or rows[0][0] is None else str(rows[0][0])
