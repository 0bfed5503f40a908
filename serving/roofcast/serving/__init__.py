"""The recommendation service and the command line."""
