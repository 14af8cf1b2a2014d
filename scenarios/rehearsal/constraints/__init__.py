"""The CHECK constraints of tables, as far as rows are drawn by them."""
