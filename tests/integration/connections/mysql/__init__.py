"""Sessions on MySQL and MariaDB, whatever is set around them."""
