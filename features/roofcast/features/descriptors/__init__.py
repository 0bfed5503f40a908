"""Numeric descriptors of model, accelerator, parallelism, precision and load."""
