"""An independent judge of the personnel database: what the new tables must hold, by the words of the story.

It shares no code with ``mapping.py``: the old rows are read with plain SELECTs and counted in dictionaries.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from migrator.errors import VerifyError
from scenarios.database import Connection, Database
from scenarios.stories import words as story_words
from scenarios.stories.words import Difference, Row, Table, day, read, rounded, slug, table

NAMESPACE = uuid.UUID("9d2b7f14-6a0e-5c33-8e5d-2f7a1c9b4402")
OPEN = date(9999, 1, 1)

_DATES = {
    "department": (),
    "employee": ("birth_date", "hire_date"),
    "dept_emp": ("from_date", "to_date"),
    "dept_manager": ("from_date", "to_date"),
    "title": ("from_date", "to_date"),
    "salary": ("from_date", "to_date"),
}
_PLAIN = {
    "department": "dept_no, dept_name",
    "employee": "emp_no, first_name, last_name, gender",
    "dept_emp": "emp_no, dept_no",
    "dept_manager": "emp_no, dept_no",
    "title": "emp_no, title",
    "salary": "emp_no, amount",
}


def differences(old: Database, new: Database) -> list[Difference]:
    """All rows in which the new tables are not what the old ones say they must be; empty if they agree.

    Both must stand still. Raises ``VerifyError`` if the old one has no employees: agreement would mean nothing.
    """
    expected = expected_tables(old)
    connection = new.connect()
    try:
        return story_words.differences(expected, actual_tables(connection, expected))
    finally:
        connection.close()


def actual_tables(connection: Connection, expected: Mapping[str, Table]) -> dict[str, Table]:
    """Reads the new tables, as the connection's transaction sees them, in the columns of ``expected``."""
    found = {}
    cursor = connection.cursor()
    for name, (columns, _) in expected.items():
        cursor.execute(f"SELECT {', '.join(columns)} FROM {name}")
        rows = [tuple(row) for row in cursor.fetchall()]
        if "title_mix" in columns:
            place = columns.index("title_mix")
            rows = [(*row[:place], _json(_parsed(row[place])), *row[place + 1 :]) for row in rows]
        found[name] = table(" ".join(columns), rows)
    return found


def _parsed(document: Any) -> Any:
    """PostgreSQL's driver parses JSON by itself, that of MySQL gives the text."""
    return json.loads(document) if isinstance(document, str) else document


def expected_tables(old: Database) -> dict[str, Table]:
    """Computes what the new tables must hold. Raises as :func:`differences` does."""
    tables = {name: _old_rows(old, name) for name in _DATES}
    if not tables["employee"]:
        raise VerifyError(
            "the old database has no employees, so there is nothing to judge",
            where=f"{old.host}:{old.port}/{old.database}",
            remedy="load it with scenarios.stories.employees.old_schema",
        )
    staff = Staff(tables)
    return {**_reference(staff), **_departments(staff), **_people(staff), **_histories(staff)}


def _old_rows(old: Database, name: str) -> list[Row]:
    # MySQL's CHAR drops the padding that PostgreSQL's keeps
    dates = [f"CAST({column} AS CHAR(10)) AS {column}" for column in _DATES[name]]
    rows = read(old, f"SELECT {', '.join([_PLAIN[name], *dates])} FROM {name}")
    for row in rows:
        for column in _DATES[name]:
            row[column] = day(row[column].strip() if row[column] else None)
    if name == "title":
        for row in rows:
            row["to_date"] = row["to_date"] or OPEN
    return rows


def _days(value: date | None) -> int:
    return value.toordinal() if value else 0


class Staff:
    """The old rows by employee or department, and what holds now."""

    def __init__(self, tables: dict[str, list[Row]]):
        self.rows = tables
        self.departments = _by("emp_no", tables["dept_emp"])
        self.titles = _by("emp_no", tables["title"])
        self.salaries = _by("emp_no", tables["salary"])
        self.employees = {row["emp_no"]: row for row in tables["employee"]}
        self.department_of = _now(self.departments, lambda row: (-_days(row["from_date"]), row["dept_no"]))
        self.title_of = _now(self.titles, lambda row: (-_days(row["from_date"]), row["title"]))
        self.salary_of = _now(self.salaries, lambda row: (-_days(row["from_date"]),))
        self.manager_of = _now(
            _by("dept_no", tables["dept_manager"]), lambda row: (-_days(row["from_date"]), row["emp_no"])
        )
        self.labels: dict[str, str] = {}
        for row in sorted(tables["title"], key=lambda row: row["title"].encode(), reverse=True):
            self.labels[slug(row["title"])] = row["title"]


def _by(key: str, rows: list[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def _now(grouped: dict[Any, list[Row]], order: Callable[[Row], tuple[Any, ...]]) -> dict[Any, Row]:
    """The first of each group's open rows."""
    found = {}
    for key, rows in grouped.items():
        open_rows = [row for row in rows if row["to_date"] == OPEN]
        if open_rows:
            found[key] = min(open_rows, key=order)
    return found


def _person(number: int | None) -> bytes | None:
    return None if number is None else story_words.uuid5(NAMESPACE, "emp", number).bytes


def _dept(number: str) -> int:
    return int("".join(letter for letter in number if letter in "0123456789"))


def _until(row: Row) -> date | None:
    found: date | None = row["to_date"]
    return None if found == OPEN else found


def _json(value: dict[str, int]) -> str:
    return json.dumps(value, sort_keys=True)


def _reference(staff: Staff) -> dict[str, Table]:
    now = Counter(
        slug(row["title"]) for number, row in staff.title_of.items() if number in staff.department_of
    )
    ever = Counter(code for _, code in {(row["emp_no"], slug(row["title"])) for row in staff.rows["title"]})
    titles = [(code, label, now[code], ever[code]) for code, label in staff.labels.items()]
    people = [
        (
            _person(row["emp_no"]), row["emp_no"], row["first_name"].strip(" "), row["last_name"].strip(" "),
            row["birth_date"], row["gender"],
        )
        for row in staff.rows["employee"]
    ]  # fmt: skip
    return {
        "gender": table("code label", [("M", "Male"), ("F", "Female")]),
        "job_title": table("title_code label holders_now holders_ever", titles),
        "person": table("person_id emp_no given_name family_name birth_date gender_code", people),
    }


def _departments(staff: Staff) -> dict[str, Table]:
    members: dict[str, list[int]] = {}
    for number, row in staff.department_of.items():
        members.setdefault(row["dept_no"], []).append(number)
    departments, stats = [], []
    for row in staff.rows["department"]:
        manager = staff.manager_of.get(row["dept_no"])
        departments.append(
            (
                _dept(row["dept_no"]), row["dept_no"], row["dept_name"],
                _person(manager["emp_no"] if manager else None),
            )
        )  # fmt: skip
        people = members.get(row["dept_no"], [])
        paid = [staff.salary_of[number]["amount"] for number in people if number in staff.salary_of]
        codes = Counter(slug(staff.title_of[n]["title"]) for n in people if n in staff.title_of)
        stats.append(
            (
                _dept(row["dept_no"]), len(people), sum(paid) * 100,
                _json({staff.labels[code]: count for code, count in codes.items()}),
                min((staff.employees[number]["hire_date"] for number in people), default=None),
            )
        )  # fmt: skip
    return {
        "department": table("dept_id code name manager_person_id", departments),
        "department_stats": table("dept_id headcount payroll_cents title_mix first_hire_on", stats),
    }


def _people(staff: Staff) -> dict[str, Table]:
    managing = {row["emp_no"] for row in staff.rows["dept_manager"] if row["to_date"] == OPEN}
    employed, former = [], []
    for number, row in staff.employees.items():
        if number in staff.department_of:
            employed.append(_employed(staff, number, row["hire_date"], number in managing))
        else:
            former.append(_former(staff, number, row["hire_date"]))
    return {
        "employment": table(
            "person_id hired_on dept_id title_code salary_cents reports_to is_manager", employed
        ),
        "former_employment": table(
            "person_id hired_on left_on days_employed last_dept_id last_title_code final_salary_cents", former
        ),
    }


def _employed(staff: Staff, number: int, hired_on: date, manages: bool) -> tuple[Any, ...]:
    dept_no = staff.department_of[number]["dept_no"]
    title, salary = staff.title_of.get(number), staff.salary_of.get(number)
    boss = staff.manager_of[dept_no]["emp_no"] if dept_no in staff.manager_of else None
    if boss == number or boss not in staff.department_of:
        boss = None
    return (
        _person(number), hired_on, _dept(dept_no), slug(title["title"]) if title else None,
        salary["amount"] * 100 if salary else None, _person(boss), int(manages),
    )  # fmt: skip


def _former(staff: Staff, number: int, hired_on: date) -> tuple[Any, ...]:
    def latest(rows: Iterable[Row], *dates: str, then: str | None = None) -> Row | None:
        return min(
            rows,
            key=lambda row: (*(-_days(row[name]) for name in dates), row[then] if then else ""),
            default=None,
        )

    last = latest(staff.departments.get(number, []), "to_date", "from_date", then="dept_no")
    title = latest(staff.titles.get(number, []), "to_date", "from_date", then="title")
    salary = latest(staff.salaries.get(number, []), "from_date")
    left_on = last["to_date"] if last else None
    return (
        _person(number), hired_on, left_on, (left_on - hired_on).days if left_on else None,
        _dept(last["dept_no"]) if last else None, slug(title["title"]) if title else None,
        salary["amount"] * 100 if salary else None,
    )  # fmt: skip


def _histories(staff: Staff) -> dict[str, Table]:
    assigned = [
        (_dept(row["dept_no"]), _person(row["emp_no"]), role, row["from_date"], _until(row))
        for role, name in (("member", "dept_emp"), ("manager", "dept_manager"))
        for row in staff.rows[name]
    ]
    titles = [
        (_person(number), place, slug(row["title"]), row["from_date"], _until(row))
        for number, rows in staff.titles.items()
        for place, row in enumerate(
            sorted(rows, key=lambda row: (row["from_date"], row["title"].encode())), start=1
        )
    ]
    return {
        "assignment": table("dept_id person_id role valid_from valid_to", assigned),
        "title_history": table("person_id seq title_code valid_from valid_to", titles),
        "salary_history": _salaries(staff),
        "hire_cohort": _cohorts(staff),
    }


def _decimal(value: Fraction, digits: int) -> Decimal:
    return Decimal(int(value * 10**digits)).scaleb(-digits)


def _salaries(staff: Staff) -> Table:
    salaries: list[tuple[Any, ...]] = []
    for number, rows in staff.salaries.items():
        before: int | None = None
        for row in sorted(rows, key=lambda row: row["from_date"]):
            change: Decimal | None = None
            if before:
                change = _decimal(rounded(Fraction((row["amount"] - before) * 100, before), 2), 2)
            before = row["amount"]
            salaries.append((_person(number), row["from_date"], _until(row), row["amount"] * 100, change))
    return table("person_id valid_from valid_to amount_cents change_pct", salaries)


def _cohorts(staff: Staff) -> Table:
    groups: dict[tuple[int, str], list[int]] = {}
    for number, row in staff.employees.items():
        groups.setdefault((row["hire_date"].year, row["gender"]), []).append(number)
    cohorts = []
    for key, people in groups.items():
        starts = [
            min(staff.salaries[number], key=lambda row: row["from_date"])["amount"] * 100
            for number in people
            if number in staff.salaries
        ]
        mean = _decimal(rounded(Fraction(sum(starts), len(starts)), 4), 4) if starts else None
        cohorts.append((*key, len(people), sum(number in staff.department_of for number in people), mean))
    return table("hire_year gender_code hired still_employed avg_start_cents", cohorts)
