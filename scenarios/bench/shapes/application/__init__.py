"""The shape of a real application: 25 joined targets over 36 tables, and what its users change in them."""
