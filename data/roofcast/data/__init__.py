"""Specs, catalogue, prices, measurements, their importers and campaigns, and the store."""
