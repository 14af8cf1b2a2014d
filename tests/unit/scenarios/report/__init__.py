"""What is made of a scenario's checks."""
