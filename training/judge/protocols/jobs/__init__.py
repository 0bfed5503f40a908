"""P6: training jobs, by roofcast's predictor of them and by baselines."""
