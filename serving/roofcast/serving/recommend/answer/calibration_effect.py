"""Effect of references and stack: the cheapest deployment without them, predicted without and with them."""

from dataclasses import replace

from roofcast.serving.recommend.answer.entries import PredictedDeployments
from roofcast.serving.recommend.answer.parts import CalibrationEffect
from roofcast.serving.recommend.search.confidence import ROUNDING, LimitModel
from roofcast.serving.recommend.search.search import Search
from roofcast.training.learner.predictor import RoofcastPredictor


def find_calibration_effect(search: Search, baseline: RoofcastPredictor) -> CalibrationEffect | None:
    """Return the cheapest deployment by the baseline, and what the search's own predictor says of it.

    The second search has the candidates of the first and decides one deployment alone.

    `search`: with the references and the stack. `baseline`: predictor without either.

    Returns
    -------
    None if the baseline cannot guarantee the confidence.
    """
    problem = search.problem
    limits = LimitModel(problem.demand, baseline, problem.confidence)
    if problem.confidence > limits.highest_confidence + ROUNDING:
        return None
    bundle = replace(problem.bundle, predictor=baseline)
    without = Search(replace(problem, bundle=bundle, unconditioned=None, baseline=None, references=None), limits)
    target = without.cheapest(problem.confidence)
    without.run([target])
    winners = without.winners(target)
    without.pin_capacities(winners, problem.confidence)
    deployments = without.deployments(winners, problem.confidence)
    if not deployments:
        return CalibrationEffect(without=None, calibrated=None)
    before, after = (PredictedDeployments(deployments, one).entry(deployments[0]) for one in (without, search))
    return CalibrationEffect(without=before, calibrated=after)
