"""Launch commands of plans, by launcher: torchtitan under torchrun, accelerate with TRL, Megatron-LM."""
