"""InferenceX campaign: repair of each row by ids, launch scripts and public configurations."""
