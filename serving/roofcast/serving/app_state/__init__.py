"""Application state that HTTP and command line share: store, registry, catalogue, active model."""
