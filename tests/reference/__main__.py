"""Writes the generated blocks of the documents."""

from __future__ import annotations

from tests.reference.pages import BLOCKS, DOCS, wanted

if __name__ == "__main__":
    for page in BLOCKS:
        (DOCS / page).write_text(wanted(page), "utf-8")
