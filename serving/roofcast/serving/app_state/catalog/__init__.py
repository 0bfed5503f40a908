"""The user's catalogue: registered models, own accelerators and prices, beside the shipped entries."""
