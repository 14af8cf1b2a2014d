"""Values as JSON and back."""
