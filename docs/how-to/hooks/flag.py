#!/usr/bin/env python3
"""Sets a flag that the application reads: a file with the side, replaced as a whole.

FLAG_FOLDER: the folder of the flags, one file for each of ``writes`` and ``reads``. FLAG_READ_S: how long the
application takes to read it again; this returns after that time. The document on standard input is the hook's.
"""

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """Writes the flag; returns the exit code."""
    told = json.load(sys.stdin)
    flag = Path(os.environ["FLAG_FOLDER"]) / told["what"]
    following = flag.with_suffix(".next")
    with following.open("w") as file:
        json.dump({"side": told["side"], "key": told["key"]}, file)
        file.flush()
        os.fsync(file.fileno())
    following.replace(flag)  # whoever reads finds the former flag or this one; made again it is the same
    time.sleep(float(os.environ.get("FLAG_READ_S", "1")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
