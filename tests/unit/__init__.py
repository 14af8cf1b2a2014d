"""Tests without servers, in rooms that mirror the code's folders; here, the rules of the whole repository."""
