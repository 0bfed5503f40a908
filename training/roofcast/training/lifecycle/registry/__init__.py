"""The registry: versions and their aliases in MLflow, the tracking of runs."""
