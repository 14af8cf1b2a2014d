"""The fence on MySQL, and what MariaDB has of it: triggers, locked accounts, or a read-only server."""
