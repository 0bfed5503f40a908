"""The InferenceX campaign: rules that repair each row from ids, launch scripts and public configurations."""
