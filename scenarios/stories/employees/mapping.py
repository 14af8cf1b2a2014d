"""The mapping from the old personnel tables to the new ones: one pure function per new table, as told in README.md.

The old side is MySQL, MariaDB or PostgreSQL: a date is text or a date, and what was unknown is the zero date or
infinity. An old row that holds until 9999-01-01 is *open*: it holds now.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import mysql_date, ratio, slug, uuid5_binary

mapping = Mapping()

SPACE = "9d2b7f14-6a0e-5c33-8e5d-2f7a1c9b4402"
OPEN = date(9999, 1, 1)
CENTS = 100
_NO_DATE = 2**31 - 1
"""Stands after all dates, of which the greatest comes first."""


@mapping.target(
    "job_title",
    key="title_code",
    grain=lambda title: [slug(title.title)],
    links=["dept_emp.emp_no = title.emp_no", "other_title.emp_no = title.emp_no"],
    roles={"other_title": "title"},
)
def job_title(title: DataFrame, dept_emp: DataFrame) -> DataFrame:
    """One title a code: old titles may differ in case and signs only."""
    titles = title.groupBy(slug("title").alias("title_code")).agg(
        F.min("title").alias("label"), F.count_distinct("emp_no").alias("holders_ever")
    )
    holders = (
        _current_titles(title)
        .join(_current_departments(dept_emp), "emp_no")
        .groupBy("title_code")
        .agg(F.count("*").alias("holders_now"))
    )
    return titles.join(holders, "title_code", "left").select(
        "title_code", "label", _or_zero("holders_now"), "holders_ever"
    )


@mapping.target("person", key="person_id")
def person(employee: DataFrame) -> DataFrame:
    """The identity of a person; the person's work is in ``employment`` or ``former_employment``."""
    return employee.select(
        _person_id("emp_no").alias("person_id"),
        "emp_no",
        F.trim("first_name").alias("given_name"),
        F.trim("last_name").alias("family_name"),
        _day(employee, "birth_date").alias("birth_date"),
        F.col("gender").alias("gender_code"),
    )


@mapping.target(
    "department",
    key="dept_id",
    grain="department.dept_no",
    links=["dept_manager.dept_no = department.dept_no"],
)
def department(department: DataFrame, dept_manager: DataFrame) -> DataFrame:
    """Departments and who manages them."""
    return department.join(_managers(dept_manager), "dept_no", "left").select(
        _dept_id("dept_no").alias("dept_id"),
        F.col("dept_no").alias("code"),
        F.col("dept_name").alias("name"),
        _person_id("manager_no").alias("manager_person_id"),
    )


@mapping.target(
    "department_stats",
    key="dept_id",
    grain="department.dept_no",
    links=[
        "dept_emp.dept_no = department.dept_no",
        "other_dept_emp.emp_no = dept_emp.emp_no",
        "employee.emp_no = dept_emp.emp_no",
        "title.emp_no = dept_emp.emp_no",
        "salary.emp_no = dept_emp.emp_no",
        "same_title.code = title.code",
    ],
    roles={"other_dept_emp": "dept_emp", "same_title": "title"},
    values={"title.code": lambda title: slug(title.title)},
)
def department_stats(
    department: DataFrame, dept_emp: DataFrame, employee: DataFrame, title: DataFrame, salary: DataFrame
) -> DataFrame:
    """Departments counted over the people whose current department they are."""
    members = (
        _days(employee)
        .join(_current_departments(dept_emp), "emp_no")
        .join(_current_salaries(salary), "emp_no", "left")
        .groupBy("dept_no")
        .agg(
            F.count("*").alias("headcount"),
            F.sum("salary_cents").alias("payroll_cents"),
            F.min("hire_date").alias("first_hire_on"),
        )
    )
    labels = title.groupBy(slug("title").alias("title_code")).agg(F.min("title").alias("label"))
    counted = (
        _current_departments(dept_emp)
        .join(_current_titles(title), "emp_no")
        .join(labels, "title_code")
        .groupBy("dept_no", "label")
        .agg(F.count("*").alias("number"))
        .groupBy("dept_no")
        .agg(F.array_sort(F.collect_list(F.struct("label", "number"))).alias("numbers"))
        .select("dept_no", F.to_json(F.map_from_entries("numbers")).alias("title_mix"))
    )
    return (
        department.join(members, "dept_no", "left")
        .join(counted, "dept_no", "left")
        .select(
            _dept_id("dept_no").alias("dept_id"),
            _or_zero("headcount"),
            _or_zero("payroll_cents"),
            F.coalesce("title_mix", F.lit("{}")).alias("title_mix"),
            "first_hire_on",
        )
    )


@mapping.target(
    "employment",
    key="person_id",
    grain="employee.emp_no",
    links=[
        "dept_emp.emp_no = employee.emp_no",
        "managing.emp_no = employee.emp_no",
        "title.emp_no = employee.emp_no",
        "salary.emp_no = employee.emp_no",
        "dept_manager.dept_no = dept_emp.dept_no",
        "manager_dept_emp.emp_no = dept_manager.emp_no",
    ],
    roles={"managing": "dept_manager", "manager_dept_emp": "dept_emp"},
)
def employment(
    employee: DataFrame, dept_emp: DataFrame, dept_manager: DataFrame, title: DataFrame, salary: DataFrame
) -> DataFrame:
    """People who work here now, and for whom."""
    departments = _current_departments(dept_emp)
    employed = departments.select(F.col("emp_no").alias("manager_no"))
    managers = _managers(dept_manager).join(employed, "manager_no", "left_semi")
    managing = _open(_days(dept_manager)).select("emp_no", F.lit(True).alias("is_manager")).distinct()
    reports_to = F.when(F.col("manager_no") != F.col("emp_no"), _person_id("manager_no"))
    return (
        _days(employee)
        .join(departments, "emp_no")
        .join(managers, "dept_no", "left")
        .join(managing, "emp_no", "left")
        .join(_current_titles(title), "emp_no", "left")
        .join(_current_salaries(salary), "emp_no", "left")
        .select(
            _person_id("emp_no").alias("person_id"),
            F.col("hire_date").alias("hired_on"),
            _dept_id("dept_no").alias("dept_id"),
            "title_code",
            "salary_cents",
            reports_to.alias("reports_to"),
            F.coalesce("is_manager", F.lit(False)).alias("is_manager"),
        )
    )


@mapping.target("former_employment", key="person_id", grain="employee.emp_no")
def former_employment(
    employee: DataFrame, dept_emp: DataFrame, title: DataFrame, salary: DataFrame
) -> DataFrame:
    """Everybody else, and what they were last."""
    last_department = (
        _days(dept_emp)
        .groupBy("emp_no")
        .agg(_latest(F.struct("dept_no", "to_date"), "to_date", "from_date", then="dept_no").alias("last"))
    )
    until = _days(title).withColumn("to_date", F.coalesce("to_date", F.lit(OPEN)))
    last_title = until.groupBy("emp_no").agg(
        slug(_latest("title", "to_date", "from_date", then="title")).alias("last_title_code")
    )
    final_salary = _days(salary).groupBy("emp_no").agg(_latest("amount", "from_date").alias("amount"))
    return (
        _days(employee)
        .join(_current_departments(dept_emp), "emp_no", "left_anti")
        .join(last_department, "emp_no", "left")
        .join(last_title, "emp_no", "left")
        .join(final_salary, "emp_no", "left")
        .select(
            _person_id("emp_no").alias("person_id"),
            F.col("hire_date").alias("hired_on"),
            F.col("last.to_date").alias("left_on"),
            F.datediff("last.to_date", "hire_date").alias("days_employed"),
            _dept_id("last.dept_no").alias("last_dept_id"),
            "last_title_code",
            _cents("amount").alias("final_salary_cents"),
        )
    )


@mapping.target("assignment", key=("dept_id", "person_id", "role"))
def assignment(dept_emp: DataFrame, dept_manager: DataFrame) -> DataFrame:
    """Members and managers of departments, from two tables in one."""
    return _assignments(dept_emp, "member").unionByName(_assignments(dept_manager, "manager"))


@mapping.target("title_history", key=("person_id", "seq"), grain="title.emp_no")
def title_history(title: DataFrame) -> DataFrame:
    """A person's titles, numbered in their order."""
    order = Window.partitionBy("emp_no").orderBy("from_date", "title")
    return _days(title).select(
        _person_id("emp_no").alias("person_id"),
        F.row_number().over(order).alias("seq"),
        slug("title").alias("title_code"),
        F.col("from_date").alias("valid_from"),
        _valid_to(),
    )


@mapping.target("salary_history", key=("person_id", "valid_from"), grain="salary.emp_no")
def salary_history(salary: DataFrame) -> DataFrame:
    """A person's salaries, each with what changed against the one before."""
    before = F.lag(_cents("amount")).over(Window.partitionBy("emp_no").orderBy("from_date"))
    return (
        _days(salary)
        .withColumn("before", before)
        .select(
            _person_id("emp_no").alias("person_id"),
            F.col("from_date").alias("valid_from"),
            _valid_to(),
            _cents("amount").alias("amount_cents"),
            ratio((_cents("amount") - F.col("before")) * 100, "before", 2).alias("change_pct"),
        )
    )


@mapping.target(
    "hire_cohort",
    key=("hire_year", "gender_code"),
    grain=lambda employee: [F.year(_day(employee, "hire_date")), employee.gender],
)
def hire_cohort(employee: DataFrame, dept_emp: DataFrame, salary: DataFrame) -> DataFrame:
    """People by the year in which they came."""
    employed = _current_departments(dept_emp).select("emp_no", F.lit(1).alias("employed"))
    first = F.min_by("amount", "from_date").alias("amount")
    start = _days(salary).groupBy("emp_no").agg(first).select("emp_no", _cents("amount").alias("start_cents"))
    return (
        _days(employee)
        .join(employed, "emp_no", "left")
        .join(start, "emp_no", "left")
        .groupBy(F.year("hire_date").alias("hire_year"), F.col("gender").alias("gender_code"))
        .agg(
            F.count("*").alias("hired"),
            F.count("employed").alias("still_employed"),
            ratio(F.sum("start_cents"), F.count("start_cents"), 4).alias("avg_start_cents"),
        )
    )


def _person_id(emp_no: str) -> Column:
    return uuid5_binary(SPACE, F.lit("emp"), emp_no)


def _dept_id(dept_no: str) -> Column:
    return F.regexp_replace(dept_no, "[^0-9]", "").cast("int")


def _cents(amount: str) -> Column:
    return F.col(amount).cast("bigint") * CENTS


def _or_zero(count: str) -> Column:
    return F.coalesce(count, F.lit(0)).alias(count)


def _day(rows: DataFrame, name: str) -> Column:
    """A date; NULL for what the old side has for unknown."""
    if dict(rows.dtypes)[name] == "string":
        return mysql_date(rows[name])
    return F.when(rows[name] <= F.lit(date.max), rows[name])


def _days(rows: DataFrame) -> DataFrame:
    return rows.withColumns({name: _day(rows, name) for name in rows.columns if name.endswith("_date")})


def _open(days: DataFrame) -> DataFrame:
    return days.where(F.col("to_date") == F.lit(OPEN))


def _valid_to() -> Column:
    return F.nullif("to_date", F.lit(OPEN)).alias("valid_to")


def _latest(value: Column | str, *dates: str, then: str | None = None) -> Column:
    """The value of the row with the greatest dates and, of several, with the smallest ``then`` in byte order."""
    order = [F.coalesce(-F.unix_date(name), F.lit(_NO_DATE)) for name in dates]
    return F.min_by(value, F.struct(*order, *([F.col(then)] if then else [])))


def _current_departments(dept_emp: DataFrame) -> DataFrame:
    """``emp_no``, ``dept_no`` of everybody who is employed."""
    latest = _latest("dept_no", "from_date", then="dept_no")
    return _open(_days(dept_emp)).groupBy("emp_no").agg(latest.alias("dept_no"))


def _current_titles(title: DataFrame) -> DataFrame:
    """``emp_no``, ``title_code``."""
    days = _days(title).withColumn("to_date", F.coalesce("to_date", F.lit(OPEN)))
    latest = _latest("title", "from_date", then="title")
    return _open(days).groupBy("emp_no").agg(slug(latest).alias("title_code"))


def _current_salaries(salary: DataFrame) -> DataFrame:
    """``emp_no``, ``salary_cents``."""
    latest = _open(_days(salary)).groupBy("emp_no").agg(_latest("amount", "from_date").alias("amount"))
    return latest.select("emp_no", _cents("amount").alias("salary_cents"))


def _managers(dept_manager: DataFrame) -> DataFrame:
    """``dept_no``, ``manager_no``."""
    latest = _latest("emp_no", "from_date", then="emp_no")
    return _open(_days(dept_manager)).groupBy("dept_no").agg(latest.alias("manager_no"))


def _assignments(rows: DataFrame, role: str) -> DataFrame:
    return _days(rows).select(
        _dept_id("dept_no").alias("dept_id"),
        _person_id("emp_no").alias("person_id"),
        F.lit(role).alias("role"),
        F.col("from_date").alias("valid_from"),
        _valid_to(),
    )
