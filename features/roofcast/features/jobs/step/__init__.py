"""One optimizer step: operators, collectives, memory, time."""
