"""Training and fine-tuning: predictions of jobs, and the cheapest hardware and plan for one."""
