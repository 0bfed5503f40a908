"""Training jobs as columns: model, hardware, method, plan."""
