"""The judge: protocols P1 to P8, their scores and the page of the scoreboard."""
