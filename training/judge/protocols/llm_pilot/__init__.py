"""P1 and P2: recommendations for an unmeasured LLM, on LLM-Pilot's benchmark."""
