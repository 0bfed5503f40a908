"""One module for each inference campaign: raw files in, measurement rows and rejected rows out."""
