"""One module for each source of training and fine-tuning runs."""
