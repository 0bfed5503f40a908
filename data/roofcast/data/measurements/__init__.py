"""Tables of measurements, of inference and training: columns, metrics, validation, row ids."""
