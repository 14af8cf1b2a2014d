"""The servers that are started here."""
