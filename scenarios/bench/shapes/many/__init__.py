"""Twenty small tables side by side: what a batch costs that touches all of them."""
