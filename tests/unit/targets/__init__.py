"""Writers of targets, without a server."""
