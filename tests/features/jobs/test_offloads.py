from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.features.jobs.frameworks import FRAMEWORKS
from roofcast.features.jobs.offloads import OFFLOADS, leaner_settings, offload_problem

IGNORED = {"zero2 optimizer+parameters"}
"""DeepSpeed reads ``offload_param`` in stage 3 alone."""


def test_what_was_run_is_supported() -> None:
    runs = load_job_campaigns()
    runs = runs[(runs["status"] == "ok") & ~runs["offload"].isin(["", "none"])]
    assert len(runs) > 80
    for name, sharding, offload, n in runs[["framework", "sharding", "offload", "n_accelerator"]].values.tolist():
        problem = offload_problem(name, sharding, offload, is_one=n == 1)
        assert not problem or f"{sharding} {offload}" in IGNORED, problem


def test_the_nearest_that_is_named_runs() -> None:
    offloads = ("optimizer", "parameters", "optimizer+parameters", "activations")
    asked = [(name, s, o) for name in FRAMEWORKS for s in ("", "ddp", "zero2", "fsdp") for o in offloads]
    problems = [text for ask in asked if (text := offload_problem(*ask, is_one=False))]
    assert problems
    for text in problems:
        name, _, settings = text.partition("runs: ")[2].partition(" (")[0].partition(" with ")
        sharding, _, offload = settings.partition(" and ")
        assert not offload_problem(name, sharding, offload, is_one=False)


def test_settings_that_blanks_may_become_are_those_that_run() -> None:
    for name in FRAMEWORKS:
        for is_one in (True, False):
            for sharding, offload, _ in leaner_settings(name, "", "", is_one=is_one, has_offload=True)[1:]:
                assert not offload_problem(name, sharding, offload, is_one=is_one)
    assert all(row.source.count("https://") == 1 for rows in OFFLOADS.values() for row in rows)
