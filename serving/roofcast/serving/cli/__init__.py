"""The command line: its options, files, tables, and the service that it can ask; `commands` has the commands."""
