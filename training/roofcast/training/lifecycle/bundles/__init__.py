"""Bundles: what a version of the predictor stores, its file, its signature and its checks."""
