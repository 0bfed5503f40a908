"""What is known: specs, catalogues, measurements and the store that keeps them."""
