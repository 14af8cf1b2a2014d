"""A source on MySQL, in what MariaDB lacks."""
