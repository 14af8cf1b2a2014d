"""Texts of types that read several texts as one value, as the target itself prints them.

``{"a"}`` and ``{a}`` are one array, ``12:00`` and ``12:00:00`` one time, ``1e2`` and ``100`` one number; the
types of extensions have rules of their own. A mapping may write any of these texts, the target prints one. So
the judge asks the target: its input function reads the mapped text, its output function prints it. Declared
lengths, scales and precisions are left out, so that nothing becomes equal by being cut. What the target can't
read stays as it is, which no value of the target's is.

Asked by Spark's Python workers, once for each text of a batch, over a connection for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

if TYPE_CHECKING:
    import pyarrow as pa

Ask = Callable[[Sequence[str]], list[str]]


class TypeOfServer(Protocol):
    """One type of a target's server. Travels in Spark's jobs with what connects to the server; never shown."""

    def asking(self) -> AbstractContextManager[Ask]:
        """A connection, and how to ask for texts. Raises ``VerifyError``, ``ConnectionFailed``."""
        ...


@dataclass(frozen=True, slots=True)
class AsPrinted:
    """Texts of one type, as the target's server prints them.

    Attributes:
        type: the server's type that reads and prints them.
    """

    type: TypeOfServer = field(repr=False)

    def __call__(self, texts: Column) -> Column:
        """The texts as the target prints them."""

        def printed(batch: pa.Array) -> pa.Array:
            if batch.null_count == len(batch):
                return batch
            with self.type.asking() as ask:
                return _replaced(batch, ask)

        udf: Any = arrow_udf
        return udf(_typed(printed), T.StringType())(texts)  # type: ignore[no-any-return]


def _typed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Annotates a function with the types by which Spark tells what to hand over: not as text, which can't be
    resolved where it runs."""
    import pyarrow as pa

    function.__annotations__ = {"batch": pa.Array, "return": pa.Array}
    return function


def _replaced(batch: pa.Array, ask: Ask) -> pa.Array:
    import pyarrow as pa

    texts = batch.to_pylist()
    different = list(dict.fromkeys(text for text in texts if text is not None))
    known = dict(zip(different, ask(different), strict=True))
    return pa.array([None if text is None else known[text] for text in texts], pa.string())
