"""Offers, price lists and the cost of owned hardware."""
