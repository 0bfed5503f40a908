"""Search for the cheapest hardware and plan of a training job.

`search` is the whole of it: `candidates` lists hardware, `plan_shortlist` keeps the plans that the analytic estimate
ranks first on it, the predictor judges them; `misses` explains accelerators without an entry. `plan_choice` takes the
fastest plan where the hardware is given.
"""
