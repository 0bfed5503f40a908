"""The gate: whether a retrained candidate replaces the champion, slice by slice; the challenger that shadows it."""
