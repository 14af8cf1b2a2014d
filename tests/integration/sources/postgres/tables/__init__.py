"""Tables of PostgreSQL that change while they are captured."""
