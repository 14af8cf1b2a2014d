"""``migrator cutover``: to the new side, back, and to the end."""
