"""How servers are connected to: settings, sessions, patience. Sources, targets and the judge use it."""
