"""pgbench: PostgreSQL's own benchmark program as a foreign client, beside a tracked table."""
