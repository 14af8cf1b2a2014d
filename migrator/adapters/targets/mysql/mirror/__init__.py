"""The mirror of joined tables in MySQL and MariaDB."""
