"""Analytic estimate of training and fine-tuning: time, traffic and memory of one optimizer step."""
