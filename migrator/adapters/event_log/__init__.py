"""Where captured segments rest."""
