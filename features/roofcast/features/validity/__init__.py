"""What can run and what can be true: support of precisions, splits, memory limits, physical bounds."""
