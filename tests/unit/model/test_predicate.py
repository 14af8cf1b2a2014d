"""What a dump request's predicate may hold, and what it may not."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.model.requests.predicate import MOST_CHARACTERS, PredicateError, check_predicate

COLUMNS = ("id", "state", "created", "Größe", 'a"b', "note")

TAKEN = [
    "id > 5",
    "NOT (id IN (1, 2, 3) OR state LIKE 'N%') AND created >= '2024-01-01'",
    "id BETWEEN -1 AND +2.5e3 AND state IS NOT NULL",
    "state NOT IN ('a', 'it''s') AND note NOT LIKE '%x' AND id NOT BETWEEN 1 AND 2",
    "coalesce(nullif(lower(trim(state)), 'x'), note) <> 'y'",
    "created < timestamp '2024-01-01 00:00:00'",
    "id % 7 = 0",
    "id = - -1 AND id - -1 > 0",
    "state = '-- no comment'",
    "mod(id, 2) = 1\nAND 1 = 1",
    "false",
    "1 / (id - 500) > 0",
    "state = 'select; drop table x -- /* ('",
]
REFUSED = [
    "id IN (SELECT id FROM other)",
    "EXISTS (SELECT 1)",
    "pg_sleep(10) IS NULL",
    "sleep(10) = 0",
    "id = nextval('s')",
    "load_file('/etc/passwd') IS NULL",
    "pg_catalog.lower(state) = 'a'",
    "other.id = 1",
    "repeat(state, 1000000000) = ''",
    "id = 1; DELETE FROM t",
    "id = 1) OR (id = 2",
    "id = 1 /* x",
    "id = 1 /*! OR 1 = 1 */",
    "id = 1 # x",
    "id = 1 -- x",
    "id = 1 -- x\r OR pg_sleep(10) IS NULL",
    "id = 1 --\r OR (SELECT true)",
    "id = 1 --(1\n) OR (1=1)",
    "note --+\n(1) = 1",
    "id = --1",
    "id\x1c= 1",
    "id\u00a0= 1",
    "id = \u0661",
    "state = 'a\\' OR 1 = 1 -- '",
    "state = E'a'",
    "state = $1",
    "state = %s",
    "state = :x",
    "@a := 1",
    "id::regclass IS NULL",
    "CAST(id AS text) = '1'",
    "id OPERATOR(public.=) 1",
    "id ~ 1",
    "1 = 1 ORDER BY 1",
    "count(*) > 1",
    "nope = 1",
    "ctid IS NULL",
    "current_user = 'root'",
    "state = 'a",
    "id =",
    "id NOT 5",
    "id IN ()",
    "id = \0",
    "",
    "(" * 40 + "id" + ")" * 40,
    "id = 1" + " OR id = 1" * MOST_CHARACTERS,
]


@pytest.mark.parametrize("text", TAKEN)
@pytest.mark.parametrize("quote", ['"', "`"])
def test_comparisons_of_a_rows_columns_are_taken(text: str, quote: str) -> None:
    check_predicate(text, COLUMNS, quote)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
@pytest.mark.parametrize("quote", ['"', "`"])
def test_all_else_is_refused(text: str, quote: str) -> None:
    with pytest.raises(PredicateError):
        check_predicate(text, COLUMNS, quote)


def test_names_are_quoted_as_the_server_quotes_them() -> None:
    check_predicate('"Größe" = 1 AND "a""b" = 2', COLUMNS, '"')
    check_predicate("`größe` = 1", COLUMNS, "`")
    for text, quote in (('"Größe" = 1', "`"), ("`id` = 1", '"'), ('"ID" = 1', '"')):
        with pytest.raises(PredicateError):
            check_predicate(text, COLUMNS, quote)


@given(st.lists(st.sampled_from([*"()'\"`;\\,-*/%.=#@:$ ", "id", "SELECT", "OR", "--", "/*", "1", "lower"])))
def test_whatever_is_written_is_taken_or_refused_by_name(words: list[str]) -> None:
    text = "".join(words)
    with suppress(PredicateError):
        check_predicate(text, COLUMNS, '"')
        left = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
        assert "--" not in left, "to PostgreSQL a comment"
        assert not set(left) & set(";\\#@:$`'\""), "something but names, values and comparisons was taken"
        assert "select" not in left.lower()
