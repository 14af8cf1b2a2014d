"""See the package's modules; nothing is exported from here."""
