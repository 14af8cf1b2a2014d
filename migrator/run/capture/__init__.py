"""The loop that turns a source's log and chunks into segments."""
