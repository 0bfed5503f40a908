"""Search of a training job's hardware and plan."""
