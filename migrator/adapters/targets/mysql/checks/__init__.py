"""What is looked at in MySQL and MariaDB before a run."""
