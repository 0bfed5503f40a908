"""Request, response and service of recommendations, for HTTP and the command line."""
