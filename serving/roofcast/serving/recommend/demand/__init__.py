"""What a deployment must serve: load, limits, inventory, presets."""
