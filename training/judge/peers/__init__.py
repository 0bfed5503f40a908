"""What others published about the rows that are judged: predictions of peers, prices, and an index of rows."""
