"""A migration project over data that others made: a film rental shop moves from MySQL or MariaDB to PostgreSQL."""
