"""``python -m dbmigrator``: the same as the ``migrator`` command."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
        sys.path.append(sys.path.pop(0))  # a user's json.py in the working folder must not hide Python's

    from migrator.cli import main

    main()
