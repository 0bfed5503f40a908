"""Training set: measurements joined with specs, targets, review rules, grouped folds."""
