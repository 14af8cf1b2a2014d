"""The log and the chunks that MySQL and MariaDB read alike."""
