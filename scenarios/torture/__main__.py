"""``python -m scenarios.torture``."""

from __future__ import annotations

import sys

from migrator.errors import MigratorError
from scenarios.torture.commands import torture

if __name__ == "__main__":
    try:
        torture()
    except MigratorError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        sys.exit(2)
