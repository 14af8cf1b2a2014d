"""``python -m tests.commit_subject FILE``: refuses a commit message that breaks the project's rules for one.

The subject is ``area: what changed`` in at most 72 characters, reasons stand in the body, and no path of a machine
stands anywhere. Subjects that git writes itself (merges, reverts, fix-ups) are left alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST_CHARACTERS = 72
_SUBJECT = re.compile(r"[a-z][a-z0-9_/,. -]*: \S.*")
_OF_GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
_PATH_OF_A_MACHINE = re.compile(r"(?<![\w./-])/(?:home|root|tmp|Users|work|var/folders)/\S*")
_CUT = "# ------------------------ >8 ------------------------"
"""``git commit --verbose`` puts the diff behind this line."""


def faults(message: str) -> list[str]:
    """Lists what is wrong with a commit message as git hands it to a hook. Lines that begin with ``#`` are git's."""
    lines = [line for line in message.partition(_CUT)[0].splitlines() if not line.startswith("#")]
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return []  # git itself refuses an empty message
    subject, found = lines[0], []
    if not _OF_GIT.match(subject):
        if not _SUBJECT.fullmatch(subject):
            found.append(f"the subject isn't 'area: what changed': {subject}")
        if len(subject) > MOST_CHARACTERS:
            found.append(f"the subject has {len(subject)} characters, {MOST_CHARACTERS} at most: {subject}")
    if len(lines) > 1 and lines[1].strip():
        found.append("the line below the subject isn't empty: reasons stand in the body")
    found += [f"a path of a machine: {path}" for path in _PATH_OF_A_MACHINE.findall("\n".join(lines))]
    return found


def main() -> int:
    """Prints the faults of the message in the file that git names; returns 1 if there are any."""
    found = faults(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
