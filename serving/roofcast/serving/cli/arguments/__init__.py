"""Arguments of commands: options, their checks, questions, completion."""
