"""The judge: protocols P1 to P12, their scores and the page of the scoreboard."""
