"""Request and response models of HTTP only."""
