"""Bulk: transactions of very many rows, amid writers of single ones."""
