"""Protocols of the scoreboard: what is held out, what is predicted, and how it is scored."""
