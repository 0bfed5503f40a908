"""Learned predictor of training jobs: core, random effects of the learner, intervals, P(fits)."""
