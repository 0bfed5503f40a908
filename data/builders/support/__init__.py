"""Builder of the support table: which engine runs what on which accelerator."""
