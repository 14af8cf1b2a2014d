"""The old personnel department at work: seeded concurrent writers whose changes are hard to follow, on any
engine."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, ClassVar

from scenarios.session import RollBack, Session
from scenarios.stories.writers import StoryWriters

_FIRST, _LAST = 10_001, 20_000
_NEW = (30_000, 2_000_000_000)
_OPEN = date(9999, 1, 1)
_TITLES = (
    "Engineer",
    "engineer",
    "Senior Engineer",
    "Staff",
    "Senior-Staff",
    "Technique Leader",
    "ENGINEER!",
)


def _leave(session: Session) -> None:
    """The person moves to former employees, and who reported to them reports to somebody else."""
    for (number,) in _somebody(session):
        session.change(
            "UPDATE dept_emp SET to_date = %s WHERE emp_no = %s AND to_date = %s",
            _day(session),
            number,
            _OPEN,
        )


def _manager_leaves(session: Session) -> None:
    managers = session.rows("SELECT emp_no FROM dept_manager WHERE to_date = %s ORDER BY emp_no", _OPEN)
    if managers:
        (number,) = session.rng.choice(managers)
        until = session.rng.choice([_OPEN, _day(session)])
        session.change("UPDATE dept_emp SET to_date = %s WHERE emp_no = %s", until, number)


def _come_back(session: Session) -> None:
    for (number,) in _somebody(session):
        session.change("UPDATE dept_emp SET to_date = %s WHERE emp_no = %s", _OPEN, number)


def _transfer(session: Session) -> None:
    """Two rows in one transaction: at no moment is the person in neither table."""
    for (number,) in _somebody(session):
        [(dept_no,)] = session.rows(
            "SELECT max(dept_no) FROM department WHERE dept_no <= %s", _dept_no(session)
        )
        today = _day(session)
        session.change(
            "UPDATE dept_emp SET to_date = %s WHERE emp_no = %s AND to_date = %s", today, number, _OPEN
        )
        if dept_no is not None and not session.change(
            "UPDATE dept_emp SET from_date = %s, to_date = %s WHERE emp_no = %s AND dept_no = %s",
            today,
            _OPEN,
            number,
            dept_no,
        ):
            session.change("INSERT INTO dept_emp VALUES (%s, %s, %s, %s)", number, dept_no, today, _OPEN)


def _add_title(session: Session) -> None:
    """Adds a title in the middle of a history: later numbers change."""
    for (number,) in _somebody(session):
        until = session.rng.choice([None, _OPEN, _day(session)])
        title = session.rng.choice(_TITLES)
        session.change("INSERT INTO title VALUES (%s, %s, %s, %s)", number, title, _day(session), until)


def _remove_title(session: Session) -> None:
    for (number,) in _somebody(session):
        for title, from_date in session.rows(
            "SELECT title, from_date FROM title WHERE emp_no = %s ORDER BY from_date LIMIT 1", number
        ):
            session.change(
                "DELETE FROM title WHERE emp_no = %s AND title = %s AND from_date = %s",
                number,
                title,
                from_date,
            )


def _add_salary(session: Session) -> None:
    """Adds a salary in the middle of a history: the change in percent of the next one changes."""
    for (number,) in _somebody(session):
        amount = session.rng.choice(
            [0, -1, session.rng.randint(1, 200), session.rng.randint(30_000, 150_000)]
        )
        until = session.rng.choice([_OPEN, _day(session)])
        session.change("INSERT INTO salary VALUES (%s, %s, %s, %s)", number, amount, _day(session), until)


def _raise(session: Session) -> None:
    for (number,) in _somebody(session):
        amount = session.rng.randint(30_000, 150_000)
        session.change(
            "UPDATE salary SET amount = %s WHERE emp_no = %s AND to_date = %s", amount, number, _OPEN
        )


def _renumber_department(session: Session) -> None:
    """Keys of three tables change. Its foreign keys forbid it while rows refer to it, so they move first."""
    rng = session.rng
    numbers = session.rows("SELECT dept_no, dept_name FROM department ORDER BY dept_no")
    old, name = rng.choice(numbers)
    [(members,)] = session.rows("SELECT count(*) FROM dept_emp WHERE dept_no = %s", old)
    if members > 50:  # the great ones only lose some, or each run would be this one action
        return
    new = f"d{rng.randint(20, 899):03}"
    session.change("INSERT INTO department VALUES (%s, %s)", new, f"moving {new}")
    for table in ("dept_emp", "dept_manager"):
        session.change(f"UPDATE {table} SET dept_no = %s WHERE dept_no = %s", new, old)
    session.change("DELETE FROM department WHERE dept_no = %s", old)
    session.change("UPDATE department SET dept_name = %s WHERE dept_no = %s", name, new)


def _make_department(session: Session) -> None:
    """Creates a department with members of its own, few enough to be moved."""
    number = f"d{session.rng.randint(20, 899):03}"
    session.change("INSERT INTO department VALUES (%s, %s)", number, f"Office {number}")
    for emp_no in {row[0] for _ in range(4) for row in _somebody(session)}:
        session.change("INSERT INTO dept_emp VALUES (%s, %s, %s, %s)", emp_no, number, _day(session), _OPEN)
        if session.rng.random() < 0.3:
            session.change(
                "INSERT INTO dept_manager VALUES (%s, %s, %s, %s)", emp_no, number, _day(session), _OPEN
            )


def _delete_employee(session: Session) -> None:
    """Deletes an employee; by ON DELETE CASCADE all their rows go."""
    for (number,) in _somebody(session):
        session.change("DELETE FROM employee WHERE emp_no = %s", number)


def _hire(session: Session) -> None:
    rng = session.rng
    number, today = rng.randint(*_NEW), _day(session)
    row = (number, _day(session), f" New{rng.randint(1, 99)}", "Colleague ", rng.choice("MF"), today)
    session.change(
        "INSERT INTO employee (emp_no, birth_date, first_name, last_name, gender, hire_date)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        *row,
    )
    session.change("INSERT INTO dept_emp VALUES (%s, 'd005', %s, %s)", number, today, _OPEN)
    session.change("INSERT INTO title VALUES (%s, %s, %s, %s)", number, rng.choice(_TITLES), today, None)
    session.change("INSERT INTO salary VALUES (%s, %s, %s, %s)", number, 50_000, today, _OPEN)


def _rehire_year(session: Session) -> None:
    """The person moves from one cohort to another."""
    for (number,) in _somebody(session):
        session.change("UPDATE employee SET hire_date = %s WHERE emp_no = %s", _day(session), number)


def _change_mind(session: Session) -> None:
    _transfer(session)
    _delete_employee(session)
    raise RollBack


class PersonnelWriters(StoryWriters):
    """The personnel department's writers."""

    ACTIONS: ClassVar = {
        "leave": (8, _leave),
        "manager leaves": (1, _manager_leaves),
        "come back": (5, _come_back),
        "transfer": (10, _transfer),
        "add title": (8, _add_title),
        "remove title": (4, _remove_title),
        "add salary": (10, _add_salary),
        "raise": (10, _raise),
        "renumber department": (2, _renumber_department),
        "make department": (2, _make_department),
        "delete employee": (3, _delete_employee),
        "hire": (5, _hire),
        "rehire year": (4, _rehire_year),
        "change mind": (4, _change_mind),
    }


def _day(session: Session) -> date:
    return date(1985, 1, 1) + timedelta(days=session.rng.randint(0, 7000))


def _dept_no(session: Session) -> str:
    return f"d{session.rng.randint(1, 9):03}"


def _somebody(session: Session) -> list[tuple[Any, ...]]:
    """The number of an employee, if there is one."""
    return session.rows(
        "SELECT emp_no FROM employee WHERE emp_no >= %s ORDER BY emp_no LIMIT 1",
        session.rng.randint(_FIRST, _LAST),
    )
