"""The measurement tables: schema, metric contract, validation, row ids."""
