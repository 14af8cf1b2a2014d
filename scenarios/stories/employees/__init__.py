"""A migration project over data that others made: a personnel database gets a schema that keeps history."""
