"""Pure arithmetic from specs to numbers: no file but its coefficients, no clock, environment or random number."""
