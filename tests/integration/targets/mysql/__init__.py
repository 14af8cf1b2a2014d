"""A target on MySQL or MariaDB."""
