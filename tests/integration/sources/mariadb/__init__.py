"""A source on MariaDB, in what MySQL lacks."""
