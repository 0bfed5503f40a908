"""From the result of the search to a ranked answer with reasons."""
