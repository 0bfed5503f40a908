"""Builders of campaigns, catalogue and document tables from raw files; not part of the wheel."""
