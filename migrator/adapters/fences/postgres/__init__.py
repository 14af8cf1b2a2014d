"""The fence on PostgreSQL: triggers, revoked rights, or a read-only database."""
