"""Shadow mode: the challenger answers a sample of the requests beside the champion, unseen; both are compared."""
