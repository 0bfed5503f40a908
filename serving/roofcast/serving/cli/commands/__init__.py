"""Commands, one module a subject; `app` registers them."""
