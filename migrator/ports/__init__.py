"""Small Protocols for what the loops need from the outside. One contract test suite each in tests/contract."""
