"""Style of the notebooks' figures: colours that colour-blind readers tell apart, and labels of the metrics.

References
----------
M. Okabe and K. Ito, "Color Universal Design", 2008: the palette.
"""

from typing import Final

BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"
GREY: Final = "#999999"
PALETTE: Final = (BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, GREY)

METRIC_LABELS: Final = {
    "ttft_s": "TTFT",
    "itl_s": "ITL",
    "tpot_s": "TPOT",
    "output_throughput_token_per_s": "output throughput",
}
METRIC_COLOURS: Final = dict(zip(METRIC_LABELS, (BLUE, ORANGE, VERMILION, GREEN), strict=True))


def use_style() -> None:
    """Set matplotlib's defaults for the notebooks."""
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from cycler import cycler  # noqa: PLC0415

    plt.rcParams.update(
        {
            "figure.dpi": 80,
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.alpha": 0.25,
            "axes.prop_cycle": cycler(color=PALETTE),
            "legend.frameon": False,
        }
    )
