"""The queue of retrainings and its worker process."""
