"""Functions of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tests.integration.transforms.drawn_values.cases import (
    ANY_TEXT,
    INTEGERS,
    Case,
    decimals,
    fits,
    of_values,
    rows,
    scaled,
)
from transforms import representations as R

KINDS = {"tinyint": 7, "int": 31, "bigint": 63}


def right_json(kind: str) -> Callable[[str], Any]:
    """Of the member ``a`` of a document whose numbers are plain."""

    def right(document: str) -> Any:
        found = json.loads(document, parse_float=Decimal).get("a")
        if found is None:
            return None
        if kind == "string":
            return found
        number = Fraction(found)
        if kind in KINDS:
            return fits(number, -(2 ** KINDS[kind]), 2 ** KINDS[kind] - 1)
        digits, scale = map(int, kind[8:-1].split(","))
        return scaled(fits(number * 10**scale, 1 - 10**digits, 10**digits - 1), scale)

    return right


PLAIN = st.one_of(
    st.integers(-300, 300).map(str),
    INTEGERS.map(str),
    *(decimals(38, scale).map(lambda n: f"{n:f}") for scale in (0, 2, 18)),
)
JSON: Mapping[str, list[Case]] = {
    "json_value": [
        Case(
            "a string",
            partial(R.json_value, "a", "$.a", kind),
            rows(
                st.one_of(
                    PLAIN.map(lambda n: f'{{"a": {n}, "b": 1}}'),
                    st.sampled_from(['{"a": null}', "{}", '{"b": 3}']),
                )
            ),
            of_values(right_json(kind)),
        )
        for kind in (*KINDS, "decimal(5,2)", "decimal(38,0)", "decimal(38,18)")
    ]
    + [
        Case(
            "a string",
            lambda: R.json_value("a", "$.a", "string"),
            rows(ANY_TEXT.map(lambda t: json.dumps({"a": t}))),
            of_values(right_json("string")),
        )
    ],
}
