"""The judge: protocols P1 to P9, their scores and the page of the scoreboard."""
