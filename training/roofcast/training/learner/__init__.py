"""The predictor: calibrated estimate, boosted residual, random effects, conformal intervals."""
