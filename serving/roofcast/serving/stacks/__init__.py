"""Stack profiles: named sets of own runs that predictions are conditioned on."""
