"""LoadGen, the load generator of MLPerf Inference."""
