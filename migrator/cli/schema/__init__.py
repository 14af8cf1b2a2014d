"""The commands about the new schema's revisions."""
