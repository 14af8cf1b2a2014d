"""An incident as one file: collected, pseudonymised, replayed on throw-away servers, shrunk, kept as a test."""
