"""Protocols of the scoreboard: each says what is held out, what is asked and how an answer is scored."""
