"""Options that recommendations of serving and of training jobs share: the model, the offers admitted, owned nodes."""

from __future__ import annotations

from typing import Final

from roofcast.serving.cli.arguments.completion import (
    complete_accelerator,
    complete_model,
    complete_pricing,
    complete_provider,
    complete_region,
    complete_vendor,
)
from roofcast.serving.cli.arguments.options import Option

Names = list[str] | None

MODEL_OPTION: Final = Option(
    "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub.", complete=complete_model
)

OFFER_OPTIONS: Final = {
    "provider": Option("Admit this provider; repeatable.", Names, None, complete=complete_provider),
    "region": Option(
        "Admit this region, country such as DE, or area such as EU, US or Asia; repeatable. Without it the cheapest "
        "region of an instance counts.",
        Names,
        None,
        complete=complete_region,
    ),
    "vendor": Option("Admit accelerators of this vendor; repeatable.", Names, None, complete=complete_vendor),
    "accelerator": Option("Admit this accelerator; repeatable.", Names, None, complete=complete_accelerator),
    "pricing": Option("Admit this kind of price; repeatable.", Names, None, complete=complete_pricing),
    "inventory": Option(
        "Nodes that you own and the hourly price of one accelerator, such as h100-sxm-80gb=16,8,1.2; repeatable.",
        Names,
        None,
        metavar="ACCELERATOR=COUNT,PER_NODE,USD_PER_H",
    ),
    "marketplaces": Option("Admit marketplaces and community clouds.", bool | None, None, names=("--marketplaces",)),
}
