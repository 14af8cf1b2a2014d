"""An incident with values of many types, that no server was asked for."""

from __future__ import annotations

from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from scenarios.chaos.incident.failure import Failure, Wrong
from scenarios.chaos.incident.history import Change, History, Row, Transaction
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.structure import Structure

CUSTOMER = TableSchema(
    TableId("public", "customer"),
    (
        Column("id", "int32", False, "integer"),
        Column("name", "string", False, "character varying(40)"),
        Column("state", "string", False, "text"),
        Column("born", "date", True, "date"),
        Column("token", "string", True, "uuid"),
        Column("profile", "string", True, "jsonb"),
        Column("seal", "binary", True, "bytea"),
        Column("limit", "decimal(12,2)", True, "numeric(12,2)"),
        Column("seen", "timestamptz", True, "timestamp with time zone"),
        Column("address", "string", True, "inet"),
        Column("active", "bool", False, "boolean"),
    ),
    ("id",),
)
ORDERS = TableSchema(
    TableId("public", "orders"),
    (
        Column("code", "string", False, "text"),
        Column("customer", "int32", True, "integer"),
        Column("note", "string", True, "text"),
    ),
    ("code",),
)
STRUCTURE = Structure(
    "postgresql",
    "public",
    {"customer": CUSTOMER, "orders": ORDERS},
    (Reference(ORDERS.id, ("customer",), CUSTOMER.id, ("id",)),),
)
MAPPING = '''"""Made by Wilhelmina Prestwick."""
from transforms import Mapping
mapping = Mapping()
@mapping.target("person", key="id")
def person(customer):
    return customer.filter("state = 'dormant'")
'''


def customer(number: int, name: str, state: str = "dormant") -> Row:
    return {
        "id": str(number),
        "name": name,
        "state": state,
        "born": "1962-03-17",
        "token": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
        "profile": f'{{"nick": "{name} the Great", "points": 918273}}',
        "seal": b"\xde\xad\xbe\xef\x01\x02",
        "limit": "81234.56",
        "seen": "2024-05-06 07:08:09.123456Z",
        "address": "203.0.113.77",
        "active": "true",
    }


def order(code: str, number: int | None, note: str | None = None) -> Row:
    return {"code": code, "customer": None if number is None else str(number), "note": note}


HISTORY = History(
    {
        "customer": [
            customer(4170005, "Ottoline Hargreaves"),
            customer(4170012, "Bartholomew Quince", "blocked"),
        ],
        "orders": [order("ORD-Zeta-1", 4170005, "Ottoline Hargreaves"), order("ORD-Eta-22", None)],
    },
    (
        Transaction(100, (Change("orders", None, order("ORD-Theta-3", 4170012, "")),)),
        Transaction(
            200,
            (
                Change(
                    "orders",
                    order("ORD-Zeta-1", 4170005, "Ottoline Hargreaves"),
                    order("ORD-Iota-4", 4170012),
                ),
                Change("customer", customer(4170005, "Ottoline Hargreaves"), None),
            ),
        ),
    ),
)
INCIDENT = Incident(
    STRUCTURE,
    HISTORY,
    Failure((Wrong("person", "different", ("name",), {"id": "4170012"}),), 1, checked=2, tables=("person",)),
    {"migration.toml": "", "mapping.py": MAPPING},
    {"log/segments.json": "[]\n"},
    {"anonymised": False, "missing": [], "left_out": []},
)
