"""Recipes of the shipped starts of servers."""
