"""Packets between MySQL's or MariaDB's server and us."""
