"""InferenceMAX, now InferenceX."""
