"""No original value is in an anonymised file, in any encoding; what has to stay as it was does."""

from __future__ import annotations

import base64
import json
import zipfile
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from migrator.errors import ConfigError, MigratorError
from migrator.model.table import Column
from scenarios.chaos.incident import privacy
from scenarios.chaos.incident.history import Change, History, Transaction
from scenarios.chaos.incident.incident_file import Incident, packed
from scenarios.chaos.incident.privacy import Privacy, pseudonymised
from scenarios.chaos.incident.pseudonyms import constants, treatment
from tests.unit.scenarios.incident.made_up import HISTORY, INCIDENT, MAPPING, STRUCTURE, customer, order

KEY = b"a key of a test, of 32 bytes ...."
VALUES = (
    "4170005", "4170012", "Ottoline Hargreaves", "Bartholomew Quince", "blocked", "1962-03-17", "Hargreaves",
    "ottoline", "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "the Great", "918273", "81234.56", "2024-05-06",
    "203.0.113.77", "ORD-Zeta-1", "ORD-Eta-22", "ORD-Theta-3", "ORD-Iota-4",
)  # fmt: skip
_SEARCHED = 4
"""Bytes of a pattern at least: fewer are in any file by chance."""
SEAL = b"\xde\xad\xbe\xef\x01\x02"


def done(incident: Incident = INCIDENT, privacy_: Privacy | None = None) -> Incident:
    return pseudonymised(incident, privacy_ or Privacy(key=KEY))


def content(incident: Incident) -> bytes:
    with zipfile.ZipFile(BytesIO(packed(incident))) as file:
        return b"\n".join(file.read(name) for name in file.namelist())


def forms(value: bytes) -> list[bytes]:
    found = [value, value.hex().encode()]
    for shift in range(3):
        code = base64.b64encode(b"\0" * shift + value)
        found.append(code[(0, 2, 3)[shift] : len(code) - 4])
    return [one for one in found if len(one) >= _SEARCHED]


def occurring(data: bytes) -> list[str]:
    lower = data.lower()
    found = [
        value
        for value in VALUES
        for coding in ("utf-8", "latin-1", "utf-16-le", "utf-16-be")
        if any(form.lower() in lower for form in forms(value.encode(coding)))
    ]
    return [*found, *(["seal"] if any(form.lower() in lower for form in forms(SEAL)) else [])]


def test_no_original_value_is_in_the_file_in_any_encoding() -> None:
    assert occurring(content(done())) == []


def test_the_search_finds_every_value_where_nothing_is_replaced() -> None:
    assert {*VALUES, "seal"} == {*occurring(content(INCIDENT))}


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "hex", "base64"])
def test_the_search_finds_a_value_that_is_coded_otherwise(coding: str) -> None:
    value = "xyOttoline Hargreaves"
    coded = {
        "hex": value.encode().hex().encode(),
        "base64": base64.b64encode(value.encode()),
    }.get(coding) or value.encode(coding)
    assert "Ottoline Hargreaves" in occurring(coded)


def test_equality_order_links_and_nulls_stay() -> None:
    found = done().history
    first, second = found.start["customer"]
    orders = found.start["orders"]
    assert int(str(first["id"])) < int(str(second["id"]))
    assert orders[0]["customer"] == first["id"]
    assert orders[0]["note"] == first["name"]
    assert orders[1]["customer"] is None
    assert [one["code"] for one in sorted(orders, key=lambda one: str(one["code"]))] == [
        orders[1]["code"], orders[0]["code"],
    ]  # fmt: skip
    added = found.transactions[0].changes[0].after
    assert added is not None
    assert (added["customer"], added["note"]) == (second["id"], "")
    moved = found.transactions[1].changes[0]
    assert moved.before == orders[0]
    assert [len(str(one)) for one in first.values() if isinstance(one, str)] == [
        len(str(one)) for name, one in HISTORY.start["customer"][0].items() if name not in ("seal", "address")
    ]


def test_what_the_code_mentions_stays_and_is_listed() -> None:
    found = done()
    assert found.history.start["customer"][0]["state"] == "dormant"
    assert found.facts["kept"]["customer.state"] == ["dormant"]
    assert found.facts["kept"]["customer.active"] == ["true"]
    assert [one["treatment"] for one in found.facts["treatments"]] == [
        "key", "text", "text", "date", "uuid", "json", "bytes", "number", "date", "blank", "keep", "key",
        "key", "text",
    ]  # fmt: skip
    assert found.facts["tells"]
    assert KEY not in content(found)
    assert KEY.hex().encode() not in content(found)


def test_what_the_code_mentions_stays_inside_of_documents_too(monkeypatch: pytest.MonkeyPatch) -> None:
    code = {
        **INCIDENT.project,
        "mapping.py": MAPPING.replace("'dormant'", "'dormant' and profile:nick = 'nick'"),
    }
    found = done(replace(INCIDENT, project=code))
    assert found.facts["kept"]["customer.profile"] == ["nick"]
    document = json.loads(str(found.history.start["customer"][0]["profile"]))
    assert next(iter(document)) == "nick"
    monkeypatch.setattr("scenarios.chaos.incident.pseudonyms.plain.document", lambda text, *_: f"{text} ")
    with pytest.raises(MigratorError, match="can't be pseudonymised"):
        done()


def test_what_is_kept_by_a_wish_may_be_replaced_elsewhere() -> None:
    found = done(privacy_=Privacy(treatment.wishes(["customer.name"], []), key=KEY))
    assert found.history.start["customer"][0]["name"] == "Ottoline Hargreaves"
    assert found.history.start["orders"][0]["note"] != "Ottoline Hargreaves"


def test_a_value_in_a_comment_of_the_code_stays_and_is_listed() -> None:
    rows = {**HISTORY.start, "customer": [customer(1, "Wilhelmina Prestwick")]}
    found = done(replace(INCIDENT, history=History(rows)))
    assert found.facts["kept"]["customer.name"] == ["Wilhelmina Prestwick"]


def test_the_failure_has_pseudonyms_and_no_words_of_an_error() -> None:
    found = done()
    second = found.history.start["customer"][1]
    assert found.failure.wrong[0].key == {"id": second["id"]}
    halted = replace(
        INCIDENT, failure=replace(INCIDENT.failure, halted="the target refuses a row: name 'Quince'")
    )
    assert done(halted).failure.halted == "the target refuses a row"


def test_wishes_come_first() -> None:
    wished = Privacy(treatment.wishes(["customer.name"], ["customer.address=text"]), key=KEY)
    found = done(privacy_=wished).history.start["customer"][0]
    assert found["name"] == "Ottoline Hargreaves"
    assert found["address"] not in (None, "203.0.113.77")


def test_a_column_that_nothing_settles_is_asked_for() -> None:
    columns = (*STRUCTURE.tables["orders"].columns, Column("where", "string", False, "point"))
    tables = {**STRUCTURE.tables, "orders": replace(STRUCTURE.tables["orders"], columns=columns)}
    incident = replace(INCIDENT, structure=replace(STRUCTURE, tables=tables))
    with pytest.raises(ConfigError, match="no pseudonym"):
        done(incident)
    assert done(incident, Privacy({("orders", "where"): "text"}, key=KEY))


@pytest.mark.parametrize("wish", ["customer.name", "name=text", "customer.name=words"])
def test_a_wish_that_says_nothing_is_refused(wish: str) -> None:
    with pytest.raises(ConfigError, match="no treatment"):
        treatment.wishes([], [wish])


def test_a_wish_for_no_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such columns"):
        done(privacy_=Privacy({("customer", "nme"): "keep"}))


def test_a_value_that_is_left_over_is_found() -> None:
    sought = {"Ottoline Hargreaves", "nobody here", "Hargreaves", 'line "two"'}
    assert privacy.left_over(INCIDENT, sought) == ["Hargreaves", "Ottoline Hargreaves"]
    noted = History({"customer": [], "orders": [order("a", 1, 'a line "two" of it')]})
    assert privacy.left_over(replace(INCIDENT, history=noted), sought) == ['line "two"']


def test_where_a_value_would_be_left_no_file_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.chaos.incident.pseudonyms.plain.Texts.of", lambda _, text: f"not {text}")
    with pytest.raises(MigratorError, match="can't be pseudonymised"):
        done()


def test_constants_are_those_of_code_and_no_prose() -> None:
    code = {
        "mapping.py": '"""prose"""\nx = F.expr("state = \'on hold\' and n > 17")  # remark\ny = 42\n',
        "more.sql": "-- 'remark'\nSELECT 'word', 7 FROM t",
        "alembic/versions/1.py": "sa.Enum('first'), 99",
    }
    found = constants.of_code(code)
    assert {"on hold", "word", "first"} <= found.texts
    assert not {"prose", "remark"} & found.texts
    assert {"17", "42", "7"} <= found.numbers
    assert "99" not in found.numbers


CODES = st.text("ABCabc0123-é ", min_size=1, max_size=8)


@given(
    st.binary(min_size=32, max_size=32),
    st.lists(st.tuples(CODES, st.integers(1, 10**6), st.none() | CODES), max_size=12),
)
@example(bytes(32), [("0", 1, None), ("2", 2, None)])  # 2 is a text in a key, and a number in another one
@settings(deadline=None, max_examples=60)
def test_what_was_equal_is_equal_and_what_was_not_is_not(
    key: bytes, rows: list[tuple[str, int, str | None]]
) -> None:
    orders = [order(*one) for one in rows]
    history = History(
        {"customer": [], "orders": orders},
        (Transaction(1, tuple(Change("orders", None, one) for one in orders)),),
    )
    incident = replace(INCIDENT, history=history, failure=replace(INCIDENT.failure, wrong=()))
    found = pseudonymised(incident, Privacy(key=key)).history
    assert [change.after for change in found.changes()] == list(found.start["orders"])
    for column in ("code", "customer", "note"):
        old, new = [one[column] for one in orders], [one[column] for one in found.start["orders"]]
        assert [a == b for a in old for b in old] == [a == b for a in new for b in new]
        assert [one is None for one in old] == [one is None for one in new]
    assert sorted(range(len(rows)), key=lambda n: int(str(orders[n]["customer"]))) == sorted(
        range(len(rows)), key=lambda n: int(str(found.start["orders"][n]["customer"]))
    )
