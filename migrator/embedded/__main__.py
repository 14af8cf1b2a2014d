"""``python -m migrator.embedded``: makes the machine ready for the local servers, and says what is used.

Installs MariaDB if it is missing (apt, as root or through sudo) and unpacks MySQL into a cache folder where its
packages can be had. Exit code 2 with cause and remedy if it is not possible.
"""

from __future__ import annotations

import sys

from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.java import java_home, java_version
from migrator.embedded.mariadb import find_mariadb, install_mariadb
from migrator.embedded.mysql import mysql_packages
from migrator.embedded.postgres import postgres_installation
from migrator.errors import MigratorError


def main() -> int:
    """Check and install; returns the exit code."""
    try:
        print(f"PostgreSQL: {postgres_installation()}")
        if find_mariadb() is None:
            print("MariaDB: missing, installing the package mariadb-server ...", flush=True)
            install_mariadb()
        found = find_mariadb()
        print(f"MariaDB: {found[0] if found else 'missing'}")
        try:
            print(f"MySQL: {mysql_packages().install()}")
        except PackagesUnavailable as error:  # its tests are skipped with this reason
            print(f"MySQL: none ({error.cause})")
        home = java_home()
        print(f"Java {java_version(home)}: {home}")
    except MigratorError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
