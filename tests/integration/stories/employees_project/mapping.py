"""The row-wise part of the employees story, into PostgreSQL."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import uuid5

mapping = Mapping()
NAMESPACE = "9d2b7f14-6a0e-5c33-8e5d-2f7a1c9b4402"
INFINITY_DAYS = 2**31 - 1


def _person(number: str = "emp_no") -> Column:
    return uuid5(NAMESPACE, F.lit("emp"), F.col(number).cast("string"))


def _unless_open(day: str) -> Column:
    return F.when(F.col(day) != F.lit("9999-01-01").cast("date"), F.col(day))


@mapping.target("person", key="person_id")
def person(employee: DataFrame) -> DataFrame:
    """One person an employee; ``infinity`` stands for a zero date."""
    return employee.select(
        _person().alias("person_id"),
        F.col("emp_no").cast("bigint").alias("emp_no"),
        F.btrim(F.col("first_name"), F.lit(" ")).alias("given_name"),
        F.btrim(F.col("last_name"), F.lit(" ")).alias("family_name"),
        F.when(F.unix_date("birth_date") != INFINITY_DAYS, F.col("birth_date")).alias("birth_date"),
        F.col("gender").alias("gender_code"),
    )


@mapping.target("assignment", key=["dept_id", "person_id", "role"])
def assignment(dept_emp: DataFrame, dept_manager: DataFrame) -> DataFrame:
    """Members and managers in one table."""

    def rows(old: DataFrame, role: str) -> DataFrame:
        return old.select(
            F.substring("dept_no", 2, 3).cast("int").alias("dept_id"),
            _person().alias("person_id"),
            F.lit(role).alias("role"),
            F.col("from_date").alias("valid_from"),
            _unless_open("to_date").alias("valid_to"),
        )

    return rows(dept_emp, "member").unionByName(rows(dept_manager, "manager"))


@mapping.target("salary_history", key=["person_id", "valid_from"])
def salary_history(salary: DataFrame) -> DataFrame:
    """Amounts in cents, which don't fit an integer any more."""
    return salary.select(
        _person().alias("person_id"),
        F.col("from_date").alias("valid_from"),
        _unless_open("to_date").alias("valid_to"),
        (F.col("amount").cast("bigint") * 100).alias("amount_cents"),
    )
