"""Schemas that nobody here wrote, under hazards, through the plugin that users have."""
