"""Pure arithmetic from specs to numbers: it reads no file, clock, environment or random number."""
