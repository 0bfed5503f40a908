"""The registry: versions and their aliases in MLflow, the audit trail of their changes, the tracking of runs."""
