"""MySQL and MariaDB, as sources, targets and the judge connect to them."""
