"""The fence on MariaDB: MySQL's, with the words in which the two differ."""
