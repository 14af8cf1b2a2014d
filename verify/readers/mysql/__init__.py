"""The judge's readers of MySQL and MariaDB."""
