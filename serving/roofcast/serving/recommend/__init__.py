"""The main job: every way to serve a demand on what is on offer, and the cheapest of them at the confidence asked."""
