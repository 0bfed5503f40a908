"""Bundle, registry, tracking, promotion and retraining."""
