"""One module a migration, named by its revision."""
