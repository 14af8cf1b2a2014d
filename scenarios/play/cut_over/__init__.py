"""Cut-overs played: clients of both sides, an operator's words, what both sides show meanwhile, and the verdict."""
