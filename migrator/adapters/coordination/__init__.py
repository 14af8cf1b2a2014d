"""Leadership, and the requests to the leader."""
