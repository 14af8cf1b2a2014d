"""What the tool tells people to do, by kinds, and who follows it."""
