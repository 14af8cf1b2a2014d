"""What the loops need from the outside, as small Protocols. One contract test suite each in tests/contract."""
