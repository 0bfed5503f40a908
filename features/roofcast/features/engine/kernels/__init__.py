"""Time of one kernel from its sizes: closed forms whose parameters were fitted on measured latencies."""
