"""Every setting of a training run, in one frozen value."""

from roofcast.data.specs import Spec


class TrainingConfig(Spec):
    """Settings of the learner; decision 18 lists what was chosen in view of which figures.

    - `n_member`: Boosted models averaged, each with its own seed.
    - `n_estimators`, `max_depth`, `learning_rate`, `subsample`, `colsample_bytree`, `min_child_weight`, `reg_lambda`:
      As in XGBoost.
    - `n_fold`: Folds of whole lineages that are held out at most, for the errors that intervals are made of.
    - `calibrate`: Whether the coefficients of the estimate are fitted to the training rows, or left at their priors.
    """

    n_member: int = 1
    n_estimators: int = 300
    max_depth: int = 3
    learning_rate: float = 0.05
    subsample: float = 0.7
    colsample_bytree: float = 0.5
    min_child_weight: float = 5.0
    reg_lambda: float = 1.0
    n_fold: int = 8
    calibrate: bool = True
    seed: int = 0
