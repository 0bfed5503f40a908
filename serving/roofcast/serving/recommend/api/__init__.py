"""Request and response models of a recommendation, shared by HTTP and command line."""
