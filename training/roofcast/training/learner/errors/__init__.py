"""The error of a prediction: random effects of groups, scale, conformal quantiles."""
