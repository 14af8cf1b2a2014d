"""``migrator rows``: what was set aside, and what becomes of it."""
