"""What an operator asks of a run: dumps, and the predicates that say of which rows."""
