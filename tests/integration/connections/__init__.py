"""Lines to servers: encryption, silence, languages; sessions are in the rooms."""
