"""The benchmark clients of vLLM and SGLang."""
