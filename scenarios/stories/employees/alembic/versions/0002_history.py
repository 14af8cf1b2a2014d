"""Employments as they are, and everything as it was.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

from scenarios.stories.employees.dialect import statements

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE employment (
    person_id         BINARY(16) NOT NULL PRIMARY KEY,
    hired_on          DATE NOT NULL,
    dept_id           SMALLINT UNSIGNED NOT NULL,
    title_code        VARCHAR(50) NULL,
    salary_cents      BIGINT NULL,
    reports_to        BINARY(16) NULL,
    is_manager        BOOLEAN NOT NULL,
    FOREIGN KEY (person_id) REFERENCES person (person_id),
    FOREIGN KEY (dept_id) REFERENCES department (dept_id),
    FOREIGN KEY (title_code) REFERENCES job_title (title_code),
    FOREIGN KEY (reports_to) REFERENCES employment (person_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE former_employment (
    person_id          BINARY(16) NOT NULL PRIMARY KEY,
    hired_on           DATE NOT NULL,
    left_on            DATE NULL,
    days_employed      INT NULL,
    last_dept_id       SMALLINT UNSIGNED NULL,
    last_title_code    VARCHAR(50) NULL,
    final_salary_cents BIGINT NULL,
    FOREIGN KEY (person_id) REFERENCES person (person_id),
    FOREIGN KEY (last_dept_id) REFERENCES department (dept_id),
    FOREIGN KEY (last_title_code) REFERENCES job_title (title_code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE assignment (
    dept_id    SMALLINT UNSIGNED NOT NULL,
    person_id  BINARY(16) NOT NULL,
    role       VARCHAR(7) NOT NULL,
    valid_from DATE NOT NULL,
    valid_to   DATE NULL,
    PRIMARY KEY (dept_id, person_id, role),
    FOREIGN KEY (dept_id) REFERENCES department (dept_id),
    FOREIGN KEY (person_id) REFERENCES person (person_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE title_history (
    person_id  BINARY(16) NOT NULL,
    seq        SMALLINT NOT NULL,
    title_code VARCHAR(50) NOT NULL,
    valid_from DATE NOT NULL,
    valid_to   DATE NULL,
    PRIMARY KEY (person_id, seq),
    FOREIGN KEY (person_id) REFERENCES person (person_id),
    FOREIGN KEY (title_code) REFERENCES job_title (title_code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE salary_history (
    person_id    BINARY(16) NOT NULL,
    valid_from   DATE NOT NULL,
    valid_to     DATE NULL,
    amount_cents BIGINT NOT NULL,
    change_pct   DECIMAL(12,2) NULL,
    PRIMARY KEY (person_id, valid_from),
    FOREIGN KEY (person_id) REFERENCES person (person_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE hire_cohort (
    hire_year         SMALLINT NOT NULL,
    gender_code       CHAR(1) NOT NULL,
    hired             INT NOT NULL,
    still_employed    INT NOT NULL,
    avg_start_cents   DECIMAL(16,4) NULL,
    PRIMARY KEY (hire_year, gender_code),
    FOREIGN KEY (gender_code) REFERENCES gender (code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
"""


def upgrade() -> None:
    """Create the tables."""
    for statement in statements(TABLES, op.get_context().dialect.name):
        op.execute(statement)


def downgrade() -> None:
    """Drop them."""
    for table in (
        "hire_cohort",
        "salary_history",
        "title_history",
        "assignment",
        "former_employment",
        "employment",
    ):
        op.drop_table(table)
