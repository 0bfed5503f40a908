"""Schema migrations, in alembic's layout."""
