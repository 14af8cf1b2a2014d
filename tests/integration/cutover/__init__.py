"""Cut-overs and the way back."""
