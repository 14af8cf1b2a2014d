"""Connections to servers: settings, sessions, patience. Sources, targets and the judge use them."""
