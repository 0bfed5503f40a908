"""Request and response bodies that only HTTP knows."""
