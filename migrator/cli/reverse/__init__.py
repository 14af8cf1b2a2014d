"""The way back as a mapping: what ``migrator init --reverse`` writes, and what ``migrator check --reverse`` tries."""
