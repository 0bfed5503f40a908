"""Steps from an empty database to the tables of today, in alembic's layout."""
