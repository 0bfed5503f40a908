"""The database under the store: SQLite or PostgreSQL, its tables and problems."""
