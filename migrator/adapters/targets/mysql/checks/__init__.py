"""Checks of a MySQL or MariaDB target before a run."""
