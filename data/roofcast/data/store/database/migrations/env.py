"""Environment that alembic runs for every command; `config.attributes` has the open connection."""

from alembic import context

from roofcast.data.store.database.tables import METADATA

_NAME_UNDER_ALEMBIC = "env_py"


def run_migrations() -> None:
    """Run the migrations on that connection, in its open transaction."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA)
    with context.begin_transaction():
        context.run_migrations()


if __name__ == _NAME_UNDER_ALEMBIC:
    run_migrations()
