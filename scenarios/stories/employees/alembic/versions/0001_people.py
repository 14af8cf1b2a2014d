"""Persons, departments and titles; the genders are constant rows.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

from scenarios.stories.employees.dialect import statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE gender (
    code  CHAR(1) NOT NULL PRIMARY KEY,
    label VARCHAR(10) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE job_title (
    title_code   VARCHAR(50) NOT NULL PRIMARY KEY,
    label        VARCHAR(50) NOT NULL,
    holders_now  INT NOT NULL,
    holders_ever INT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE person (
    person_id   BINARY(16) NOT NULL PRIMARY KEY,
    emp_no      BIGINT NOT NULL UNIQUE,
    given_name  VARCHAR(64) NOT NULL,
    family_name VARCHAR(64) NOT NULL,
    full_name   VARCHAR(130) GENERATED ALWAYS AS (CONCAT(given_name, ' ', family_name)) VIRTUAL,
    birth_date  DATE NULL,
    gender_code CHAR(1) NOT NULL,
    FOREIGN KEY (gender_code) REFERENCES gender (code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE department (
    dept_id           SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    code              CHAR(4) NOT NULL UNIQUE,
    name              VARCHAR(64) NOT NULL UNIQUE,
    manager_person_id BINARY(16) NULL,
    FOREIGN KEY (manager_person_id) REFERENCES person (person_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE department_stats (
    dept_id       SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    headcount     INT NOT NULL,
    payroll_cents BIGINT NOT NULL,
    title_mix     JSON NOT NULL,
    first_hire_on DATE NULL,
    FOREIGN KEY (dept_id) REFERENCES department (dept_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
"""
GENDERS = "INSERT INTO gender (code, label) VALUES ('M', 'Male'), ('F', 'Female')"


def upgrade() -> None:
    """Create the tables."""
    for statement in statements(TABLES, op.get_context().dialect.name):
        op.execute(statement)
    op.execute(GENDERS)


def downgrade() -> None:
    """Drop them."""
    for table in ("department_stats", "department", "person", "job_title", "gender"):
        op.drop_table(table)
