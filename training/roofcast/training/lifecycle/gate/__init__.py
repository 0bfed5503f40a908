"""The gate: whether a challenger replaces the champion, slice by slice."""
