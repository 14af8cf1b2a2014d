"""Leadership, dump requests and hints."""
