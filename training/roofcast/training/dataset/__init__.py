"""The training set: joined rows, targets, review rules, grouped folds."""
