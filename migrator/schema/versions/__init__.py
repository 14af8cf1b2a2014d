"""Revisions of the control tables: ``source_*`` and ``target_*`` are separate branches."""
