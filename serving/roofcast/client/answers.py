"""Types of responses; generated from the OpenAPI document by `make client`."""

from __future__ import annotations

# ruff: noqa: D101, I001

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class AcceleratorName(TypedDict):
    id: str
    name: str
    vendor: str


class AcceleratorSpec(TypedDict):
    id: str
    vendor: str
    name: str
    architecture: NotRequired[str]
    year: NotRequired[int | None]
    form_factor: NotRequired[str]
    memory_type: NotRequired[str]
    memory_byte: float
    bandwidth_byte_per_s: float
    peak_flop_per_s: dict[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"], float]
    l2_byte: NotRequired[float]
    tdp_w: NotRequired[float | None]
    link: NotRequired[str]
    link_bandwidth_byte_per_s: float
    link_domain_size: NotRequired[int]
    pcie_gen: NotRequired[int | None]
    source: str
    note: NotRequired[str]


class AnswerRatios(TypedDict):
    kind: str
    name: str
    metric: str
    n_row: int
    low_ratio: float
    median_ratio: float
    high_ratio: float


class Basis(TypedDict):
    package_version: str
    predictor_version: str
    predictor_sha256: str
    prices_as_of: str | None
    offers_sha256: str
    catalog_sha256: str


class CampaignInfo(TypedDict):
    name: str
    title: str
    source: str
    files: list[str]
    licence: str
    licence_file: NotRequired[str]
    attribution: str
    measured_from: NotRequired[str | None]
    measured_to: NotRequired[str | None]
    retrieved: NotRequired[str | None]
    format: NotRequired[str]
    n_read: int
    n_rejected: NotRequired[int]
    n_row: int
    notes: NotRequired[list[str]]


class CampaignReport(TypedDict):
    campaign: str
    n_kept: int
    n_learnable: int
    not_learnt: str


class CampaignRow(TypedDict):
    question: dict[str, float | int | str | bool | None]
    measured: dict[str, float]
    is_learnt: bool


class CampaignRows(TypedDict):
    campaign: str
    n_row: int
    n_learnt: int
    rows: list[CampaignRow]


class ChallengerResponse(TypedDict):
    version: str
    sha256: str
    description: str
    is_loaded: bool
    problem: str
    shadow_ratio: float


class ChallengerWithdrawn(TypedDict):
    version: str


class Change(TypedDict):
    metric: str
    model: str
    accelerator: str
    n_accelerator: float
    engine: str
    stack: str
    n_input_token: float
    n_output_token: float
    concurrency: float | None
    request_rate: float | None
    statistic: str
    date_before: str
    before: float
    date_after: str
    after: float
    ratio: float
    settings: list[str]


class ChangeResponse(TypedDict):
    at: str
    action: Literal["promotion", "rollback", "shadow", "withdrawal"]
    caller: str
    version_before: str
    version: str
    target: Literal["inference", "training"]


class Check(TypedDict):
    ok: bool
    detail: NotRequired[str]


class CostOfConfidence(TypedDict):
    confidence: float
    cost_usd_per_h: float | None


class FieldError(TypedDict):
    field: str
    problem: str
    given: NotRequired[str | None]
    expected: NotRequired[list[str]]
    did_you_mean: NotRequired[list[str]]
    mentions: NotRequired[list[str]]
    source: NotRequired[str]
    line: NotRequired[int]


class GroupChange(TypedDict):
    kind: str
    name: str
    metric: str
    n_run: int
    n_beyond: int
    median_ratio: float
    p_value: float | None
    is_drift: bool


class GroupErrors(TypedDict):
    kind: str
    name: str
    metric: str
    n_row: int
    n_configuration: int
    n_outside: int
    median_ape: float
    bias: float
    coverage: float
    p_value: float | None
    is_drift: bool


class ImportSummary(TypedDict):
    import_id: str
    target: Literal["inference", "training"]
    key: str
    added_at: str
    n_row: int
    n_quarantined: int
    n_withdrawn: int


class IntervalResponse(TypedDict):
    value: float
    low: float
    high: float


class JobInterval(TypedDict):
    value: float
    low: float
    high: float


class JobMissResponse(TypedDict):
    accelerator: str
    n_accelerator: int | None
    reason: Literal["too_slow", "over_budget", "may_not_fit", "dearer", "too_few_nodes", "does_not_fit", "excluded"]
    detail: str
    cost_usd: float | None
    hours: float | None
    p_limits_met: float | None


class JobPlanResponse(TypedDict):
    framework: str
    compute_precision: str
    tp: int
    pp: int
    vp: int
    cp: int
    dp: int
    ep: int
    sharding: str
    recomputation: str
    sequence_parallel: bool
    n_micro_batch_sequence: float
    n_gradient_accumulation: float
    n_global_batch_sequence: float


class JobPredictionResponse(TypedDict):
    predictor_version: str
    level: float
    rows: list[dict[str, float | int | str | bool | None]]


class JobRunResponse(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    n_accelerator: int
    n_instance: int
    usd_per_h: float
    plan: JobPlanResponse
    hours: float
    cost_usd: float
    p_fits: float
    p_deadline_met: float | None
    p_budget_met: float | None
    p_limits_met: float


class MeasuredStackSummary(TypedDict):
    name: str
    n_row: int
    models: list[str]
    accelerators: list[str]
    engines: list[str]


class MeasurementsChanged(TypedDict):
    n_row: int
    n_refused: NotRequired[int]


class ModelSpec(TypedDict):
    id: str
    lineage: str
    fold_group: str
    family: NotRequired[str]
    model_type: NotRequired[str]
    n_layer: int
    n_encoder_layer: NotRequired[int]
    hidden_size: int
    intermediate_size: NotRequired[int]
    mlp_gated: NotRequired[bool]
    n_head: int
    n_kv_head: int
    head_dim: int
    attention: NotRequired[Literal["mha", "gqa", "mqa", "mla"]]
    kv_lora_rank: NotRequired[int]
    q_lora_rank: NotRequired[int]
    qk_rope_head_dim: NotRequired[int]
    v_head_dim: NotRequired[int]
    sliding_window: NotRequired[int]
    n_sliding_layer: NotRequired[int]
    n_linear_layer: NotRequired[int]
    n_sparse_layer: NotRequired[int]
    sparse_top_k: NotRequired[int]
    kv_compression: NotRequired[int]
    vocab_size: int
    tie_word_embeddings: NotRequired[bool]
    max_context_token: NotRequired[int]
    n_expert: NotRequired[int]
    n_expert_per_token: NotRequired[int]
    n_shared_expert: NotRequired[int]
    moe_intermediate_size: NotRequired[int]
    shared_expert_intermediate_size: NotRequired[int]
    n_dense_layer: NotRequired[int]
    weight_precision: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]]
    n_param: int
    n_param_active: int
    n_param_lookup: NotRequired[int]
    n_param_published: NotRequired[int | None]
    n_param_published_source: NotRequired[str]
    n_param_difference: NotRequired[str]
    released: NotRequired[str | None]
    source: str
    note: NotRequired[str]


class NearMeasurement(TypedDict):
    model: str
    accelerator: str
    n_accelerator: float
    engine: str
    engine_version: str
    weight_precision: str
    kv_precision: str
    n_input_token: float
    n_output_token: float
    load: str
    concurrency: float | None
    request_rate: float | None
    statistic: str
    campaign: str
    date: str
    measured: float
    correlation: float
    differs: list[str]


class Offer(TypedDict):
    provider: str
    instance_type: str
    region: str
    accelerator: str
    n_accelerator: int
    vcpu: NotRequired[float | None]
    memory_byte: NotRequired[float | None]
    pricing: Literal["on_demand", "spot", "reserved_1y", "reserved_3y"]
    market: NotRequired[Literal["provider", "marketplace"]]
    price_usd_per_h: float
    listed_price_per_h: NotRequired[float | None]
    listed_currency: NotRequired[str]
    as_of: str
    source: str
    licence: str


class OtherOffer(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    n_instance: int
    cost_usd_per_h: float


class OwnCampaign(TypedDict):
    name: str
    n_row: int
    licence: NotRequired[str]
    source: NotRequired[str]


class PairedErrors(TypedDict):
    kind: str
    name: str
    metric: str
    n_row: int
    n_configuration: int
    champion_median_ape: float
    challenger_median_ape: float
    champion_bias: float
    challenger_bias: float
    n_nearer: int
    p_value: float | None
    verdict: Literal["better", "worse", "no difference found", "not tested"]


class PeakLoad(TypedDict):
    users: float | None
    think_time_s: float
    request_rate_per_s: float | None
    requests_in_flight: float | None
    text: str


class PredictedMetric(TypedDict):
    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: float | None
    uncalibrated: float | None


class PredictorResponse(TypedDict):
    target: Literal["inference", "training"]
    version: str
    sha256: str
    roofcast_version: str
    data_digest: str
    n_row: int
    engines: list[str]
    held_out: dict[str, dict[str, float]]
    highest_level: float


class PresetResponse(TypedDict):
    name: str
    meaning: str
    n_input_token: float
    n_output_token: float
    observed: str
    source: str
    basis: str
    think_time_s: NotRequired[float | None]


class ProblemResponse(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    problems: NotRequired[list[str]]
    errors: NotRequired[list[FieldError]]
    field: NotRequired[str]
    did_you_mean: NotRequired[list[str]]
    request_id: NotRequired[str]
    checks: NotRequired[dict[str, Check] | None]


class ProtocolFigures(TypedDict):
    roofcast_version: str
    computed_on: str
    figures: dict[str, Any]


class ReadinessResponse(TypedDict):
    status: Literal["ready", "degraded"]
    predictor_version: str
    checks: dict[str, Check]


class ReplicaSpeculation(TypedDict):
    kind: str
    n_token: int
    acceptance_ratio: float


class RetrainingResponse(TypedDict):
    id: str
    target: Literal["inference", "training"]
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    requested_at: str
    started_at: str | None
    finished_at: str | None
    report: dict[str, Any] | None
    error: str
    stage: str
    n_step_done: int
    n_step: int
    n_interruption: int


class RetrainingScheduleResponse(TypedDict):
    retrain_at: str
    next_at: str | None


class RunErrors(TypedDict):
    kind: str
    name: str
    metric: str
    n_row: int
    median_ape: float
    bias_ratio: float
    within_interval: float


class ScoreboardResponse(TypedDict):
    predictor_version: str
    data_digest: str
    n_row: int
    held_out: dict[str, dict[str, float]]
    protocols: dict[str, ProtocolFigures]


class SharedAnswers(TypedDict):
    since: str | None
    n_row: int
    n_champion_only: int
    n_challenger_only: int
    ratios: list[AnswerRatios]


class StackAdded(TypedDict):
    name: str
    n_new: int
    n_known: int
    n_row: int


class StackErrors(TypedDict):
    mape: float
    median_ape: float
    bias: float
    coverage: float
    width: float


class StackMetric(TypedDict):
    metric: str
    n_row: int
    before: StackErrors
    after: StackErrors | None


class StackRemoved(TypedDict):
    name: str
    n_row: int


class StackReport(TypedDict):
    name: str
    level: float
    notes: list[str]
    n_row: int
    n_run: int
    models: list[str]
    accelerators: list[str]
    engines: list[str]
    errors: list[StackMetric]
    measure_next: list[dict[str, float | int | str | bool | dict[str, float] | None]]


class StackResponse(TypedDict):
    name: str
    kind: Literal["profile", "shared_profile", "measured"]
    notes: NotRequired[list[str]]


class StackSummary(TypedDict):
    name: str
    n_row: int
    created_at: str
    changed_at: str
    is_shared: bool


class VersionResponse(TypedDict):
    version: str
    sha256: str
    run_id: str
    in_service: bool
    is_challenger: bool
    description: str


class WithoutStack(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    p_limits_met: float
    p_limits_met_without: float
    predictions: list[PredictedMetric]


class ChallengerErrors(TypedDict):
    version: str
    n_compared: int
    n_learnt: int
    errors: list[PairedErrors]


class ChoicesResponse(TypedDict):
    presets: list[PresetResponse]
    accelerators: list[AcceleratorName]
    vendors: list[str]
    providers: list[str]
    regions: list[str]
    pricing: list[str]
    engines: list[str]
    weight_precisions: list[str]
    speculations: list[str]
    deployments: list[str]
    names: dict[str, str]
    highest_level: float


class DriftReport(TypedDict):
    predictor_version: str
    level: float
    n_row: int
    n_learnt: int
    n_left_out: int
    n_sampled_out: int
    n_compared: int
    n_repeat: int
    n_changed: int
    errors: list[GroupErrors]
    repeats: list[GroupChange]
    changes: list[Change]
    n_other_settings: int
    setting_changes: list[Change]
    warnings: list[str]
    reasons: list[str]
    is_drift: bool
    challenger: NotRequired[ChallengerErrors | None]


class Entry(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    in_flight_per_replica: float
    load_per_replica: float
    p_limits_met: float
    predictions: list[PredictedMetric]
    power_w: float
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: list[str]
    warnings: list[str]
    rank: int
    users_per_replica: float | None
    request_rate_per_replica: float
    cost_usd_per_month: float
    cost_usd_per_million_input_token: float
    cost_usd_per_million_output_token: float
    cost_usd_per_million_token: float
    p_runs: float | None
    needs_quantised_copy: bool
    also_at: list[OtherOffer]
    nearest: list[dict[str, Any]]
    deployment: NotRequired[str | None]


class FileAdded(TypedDict):
    n_new: int
    n_known: int
    n_quarantined: int
    quarantine_reasons: list[str]
    n_withdrawn: int
    n_claimed: int
    n_of_key: dict[str, int]
    import_id: str
    warnings: list[str]
    drift_url: NotRequired[str | None]
    drift: NotRequired[DriftReport | None]
    format: str
    n_row: int
    n_failed_run: int
    is_kept: bool


class FleetPart(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    in_flight_per_replica: float
    load_per_replica: float
    p_limits_met: float
    predictions: list[PredictedMetric]
    power_w: float
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: list[str]
    warnings: list[str]


class FrontPoint(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    e2e_s: float
    p_limits_met: float
    load_per_replica: float


class JobEntryResponse(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    n_accelerator: int
    n_instance: int
    usd_per_h: float
    plan: JobPlanResponse
    hours: float
    cost_usd: float
    p_fits: float
    p_deadline_met: float | None
    p_budget_met: float | None
    p_limits_met: float
    rank: int
    hours_interval: JobInterval
    cost_usd_interval: JobInterval
    energy_kwh: JobInterval
    power_w: float
    power_share: float
    step_time_s: JobInterval
    throughput_token_per_s: JobInterval
    mfu_ratio: JobInterval
    peak_memory_byte: JobInterval
    memory_byte: dict[str, float]
    memory_capacity_byte: float
    outside: bool
    launch: dict[str, str]
    launch_problems: dict[str, str]
    ties_first: NotRequired[bool]
    also_at: list[OtherOffer]


class JobImportErrors(TypedDict):
    predictor_version: str
    level: float
    n_row: int
    n_learnt: int
    groups: list[RunErrors]


class JobMeasurementsAdded(TypedDict):
    n_new: int
    n_known: int
    n_quarantined: int
    quarantine_reasons: list[str]
    n_withdrawn: int
    n_claimed: int
    n_of_key: dict[str, int]
    import_id: str
    warnings: list[str]
    is_kept: bool
    errors: NotRequired[JobImportErrors | None]


class JobRecommendationResponse(TypedDict):
    model: str
    method: str
    total_token: float
    n_step: int
    n_token_per_sequence: int
    n_global_batch_sequence: int
    deadline_h: float | None
    budget_usd: float | None
    confidence: float
    level: float
    predictor_version: str
    n_plan: int
    n_hardware: int
    n_offer: int
    entries: list[JobEntryResponse]
    pareto: list[JobRunResponse]
    misses: list[JobMissResponse]
    n_miss: int
    defaults: list[str]
    assumptions: list[str]
    warnings: list[str]


class Lever(TypedDict):
    provider: str
    region: str
    instance_type: str
    pricing: str
    market: str
    price_usd_per_h: float
    price_as_of: str
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    kind: Literal["precision", "users", "limit", "pricing", "region", "provider"]
    change: str
    saving_ratio: float | None
    needs_quantised_copy: bool
    warnings: list[str]


class MeasurementsAdded(TypedDict):
    n_new: int
    n_known: int
    n_quarantined: int
    quarantine_reasons: list[str]
    n_withdrawn: int
    n_claimed: int
    n_of_key: dict[str, int]
    import_id: str
    warnings: list[str]
    drift_url: NotRequired[str | None]
    drift: NotRequired[DriftReport | None]


class MetricReasons(TypedDict):
    value: float
    low: float
    high: float
    uncalibrated: IntervalResponse | None
    contributions: dict[str, float]
    nearest: list[NearMeasurement]


class PredictionReasons(TypedDict):
    status: Literal["ok", "does_not_fit", "out_of_range"]
    reason: str
    level: float
    outside: list[str]
    ttft_s: NotRequired[MetricReasons | None]
    tpot_s: NotRequired[MetricReasons | None]
    itl_s: NotRequired[MetricReasons | None]
    e2e_s: NotRequired[MetricReasons | None]
    output_throughput_token_per_s: NotRequired[MetricReasons | None]


class PredictionResponse(TypedDict):
    predictor_version: str
    level: float
    stack: NotRequired[StackResponse | None]
    rows: list[dict[str, float | int | str | bool | None]]


class Rejection(TypedDict):
    accelerator: str
    engine: str
    weight_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    speculation: ReplicaSpeculation | None
    reason: Literal[
        "same_cost", "dearer", "over_budget", "too_few_nodes", "misses_limit", "no_offer", "does_not_fit", "no_engine"
    ]
    detail: str
    excess: float | None


class VersionComparison(TypedDict):
    champion_version: str
    version: str
    is_challenger: bool
    answers: SharedAnswers
    measurements: ChallengerErrors


class ExplanationResponse(TypedDict):
    question: dict[str, float | int | str | bool | None]
    accelerator: AcceleratorSpec
    estimate: dict[str, float | None]
    is_saturated: bool
    remarks: list[str]
    assumed: list[str]
    bounds: dict[str, dict[str, float]]
    bottleneck: str
    operators: list[dict[str, float | int | str | bool | None]]
    memory: dict[str, float | int | str | bool | None]
    prediction: PredictionReasons


class ExplanationsResponse(TypedDict):
    predictor_version: str
    stack: NotRequired[StackResponse | None]
    rows: list[ExplanationResponse]


class RecommendationResponse(TypedDict):
    id: str
    basis: Basis
    model: str
    load: PeakLoad
    confidence: float
    level: float
    predictor_version: str
    stack: NotRequired[StackResponse | None]
    stack_effect: NotRequired[str | None]
    without_stack: NotRequired[WithoutStack | None]
    n_configuration: int
    n_candidate: int
    n_offer: int
    entries: list[Entry]
    fleet: list[FleetPart]
    levers: NotRequired[list[Lever]]
    runner_up_usd_per_h: float | None
    cost_of_confidence: list[CostOfConfidence]
    pareto: list[FrontPoint]
    n_rejected: int
    rejections: list[Rejection]
    families: list[Rejection]
    warnings: NotRequired[list[str]]
