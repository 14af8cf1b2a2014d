"""Values out of JSON text, exactly or not at all; a part of ``transforms.representations``.

Spark's own parser keeps 38 digits of a number and makes a double of what has more, or an exponent. Its casts round,
cut and wrap. So what it found is compared with what stands there, and what isn't the same fails.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from migrator.errors import MappingError
from transforms.columns import Value, as_column, checked

_WHOLE = "tinyint|byte|smallint|short|int|integer|bigint|long"
_EXACT = re.compile(rf"({_WHOLE}|decimal|dec|numeric)(\(.*\))?")
_FLOATING = re.compile("float|real|double")
_NUMBER = r"^(BIGINT|DECIMAL|DOUBLE)"
_PLAIN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)\z"
_TIMES = {
    "date": r"^\d{4}-\d{2}-\d{2}\z",
    "timestamp_ntz": r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?\z",
    "timestamp": r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?\z",
}
_PERHAPS_LOST = r"[0-9.]{17}|[eE][+-]?[0-9]{3}"
"""A pattern of long numbers: in text without one, a double still says which number was written."""


def json_value(text: Value, path: str, spark_type: str) -> Column:
    """A value out of JSON text, exact up to 38 digits. NULL where there is none; text that is no JSON fails.

    Digits that the type has no room for, a part of a second below a microsecond, and a time of day where a date is
    wanted fail; only ``double`` and ``float`` give the nearest number. A time without an offset is in UTC.

    Args:
        text: JSON.
        path: as in ``$.address.lines[0]``.
        spark_type: what it is to be: a kind of number, ``boolean``, ``string`` (also of objects and arrays, as
            JSON), ``date``, ``timestamp`` or ``timestamp_ntz``. A value that can't be that type fails.

    Raises:
        MappingError: another type, or no path.
    """
    wanted = spark_type.strip().lower().replace("timestamp_ltz", "timestamp")
    known = (
        _EXACT.fullmatch(wanted) or _FLOATING.fullmatch(wanted) or wanted in (*_TIMES, "string", "boolean")
    )
    if not known or not path.startswith("$"):
        raise MappingError(
            f"json_value: {spark_type!r} at {path!r} can't be had",
            cause="a path begins with $, and a value is a number, a boolean, a text, a date or a timestamp",
            remedy="take single values, or an object or an array as a string",
        )
    column = as_column(text)
    # Spark passes over what follows a document: within an array, and within an object, that is no JSON any more.
    document = F.try_parse_json(F.concat(F.lit("["), column, F.lit("]")))
    alone = F.try_parse_json(F.concat(F.lit('{"v":'), column, F.lit("}"))).isNotNull() & document.isNotNull()
    place = f"$[0]{path[1:]}"
    found = F.variant_get(document, place, spark_type)
    exact = _is_exact(column, document, place, found, wanted)
    kept = checked(column, exact, found, spark_type, f"has no exact {spark_type} at {path}")
    return checked(column, alone, kept, spark_type, "is no JSON")


def _is_exact(column: Column, document: Column, place: str, found: Column, wanted: str) -> Column:
    """Tells whether what was found is what is written."""
    kind = F.schema_of_variant(F.variant_get(document, place, "variant"))
    written = F.variant_get(document, place, "string")
    number = kind.rlike(_NUMBER)
    lost = kind.rlike("DOUBLE|VARIANT") & column.rlike(_PERHAPS_LOST)
    if _FLOATING.fullmatch(wanted):
        endless = found.cast("double").isin(float("inf"), float("-inf"))
        return found.isNull() | ~endless | ((kind == "STRING") & written.rlike("(?i)inf"))
    if wanted in _TIMES:
        return found.isNull() | ((kind == "STRING") & written.rlike(_TIMES[wanted]))
    if wanted == "boolean":
        return found.isNull() | ~number | written.isin("0", "1")
    if wanted == "string":
        return found.isNull() | ~lost
    of_double = F.try_variant_get(document, place, "double") == found.cast("double")
    same = _digits(written) == _digits(found.cast("string"))
    text_of_number = F.when(kind == "BOOLEAN", True).otherwise(written.rlike(_PLAIN) & same)
    return found.isNull() | F.when(kind == "DOUBLE", ~lost & of_double).otherwise(text_of_number)


def _digits(number: Column) -> Column:
    """A plain number without what may be written or left out: a plus sign, zeros at either end, the sign of
    zero."""
    short = F.regexp_replace(number, r"^\+|^(-?)\+?0+(?=[0-9])", "$1")
    short = F.regexp_replace(F.regexp_replace(short, r"(\.[0-9]*?)0+\z", "$1"), r"\.\z", "")
    return F.regexp_replace(F.regexp_replace(short, r"^(-?)0+(?=[0-9])", "$1"), r"^-?0?\z", "0")
