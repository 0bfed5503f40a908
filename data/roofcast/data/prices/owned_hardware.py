"""Owned hardware: its price for an hour of use, from purchase and power."""

import datetime as dt
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Final

from pydantic import Field

from roofcast.data import units
from roofcast.data.specs import Count, Name, Offer, Positive, Source, Spec

Amount = Annotated[Decimal, Field(ge=0, lt=10**12, allow_inf_nan=False)]

_CENT_OF_CENT: Final = Decimal("0.0001")
_H_PER_YEAR: Final = Decimal(units.H_PER_YEAR)
_W_PER_KW: Final = Decimal(units.W_PER_KW)


class OwnedHardware(Spec):
    """An owned server: cost of purchase, operation and power, in US dollars.

    `utilisation_ratio` is the share of hours in use; the hours of use carry the cost of all hours. `power_w` is drawn
    at the plug in use, `idle_power_w` otherwise; `pue_ratio` is the facility's energy over that of its machines.
    """

    name: Name
    accelerator: Name
    n_accelerator: Count = 1
    vcpu: Positive | None = None
    memory_byte: Positive | None = None
    capex_usd: Amount
    residual_usd: Amount = Decimal(0)
    lifetime_year: Annotated[Decimal, Field(gt=0, le=50)]
    other_usd_per_year: Amount = Decimal(0)
    power_w: Amount
    idle_power_w: Amount = Decimal(0)
    power_price_usd_per_kwh: Annotated[Decimal, Field(ge=0, le=100)]
    pue_ratio: Annotated[Decimal, Field(ge=1, le=10)] = Decimal(1)
    utilisation_ratio: Annotated[Decimal, Field(gt=0, le=1)]
    region: str = "own"
    source: Source = "own figures"

    def price_usd_per_h(self) -> Decimal:
        """Return the cost of one hour of use, rounded to a hundredth of a cent.

        Notes
        -----
        Costs per calendar hour, ``[(capex - residual) / lifetime + other] / 8760 h`` and
        ``[u x P + (1 - u) x P_idle] x PUE x price``, divided by the utilisation ``u``. A residual value above the
        purchase price counts as the purchase price.

        Examples
        --------
        87,600 USD over one year are 10 USD an hour, 20 USD an hour of use at one half; 1 kW x 1.5 x 0.20 USD is 0.30.

        >>> server = OwnedHardware(name="mine", accelerator="nvidia-l40s-48gb", capex_usd=87_600, lifetime_year=1,
        ...     power_w=1000, power_price_usd_per_kwh="0.20", pue_ratio="1.5", utilisation_ratio="0.5")
        >>> server.price_usd_per_h()
        Decimal('20.3000')
        """
        utilisation = self.utilisation_ratio
        depreciation = max(self.capex_usd - self.residual_usd, Decimal(0))
        fixed = (depreciation / self.lifetime_year + self.other_usd_per_year) / _H_PER_YEAR
        drawn_kw = (utilisation * self.power_w + (1 - utilisation) * self.idle_power_w) / _W_PER_KW
        power = drawn_kw * self.pue_ratio * self.power_price_usd_per_kwh
        return ((fixed + power) / utilisation).quantize(_CENT_OF_CENT, ROUND_HALF_EVEN)

    def offer(self, as_of: dt.date) -> Offer:
        """Return the server as an on-demand offer of the provider ``owned``.

        Raises `InputError` if the price is 0, or above the limit of an offer.
        """
        return Offer.parse(
            {
                **self.model_dump(include={"region", "accelerator", "n_accelerator", "vcpu", "memory_byte"}),
                "provider": "owned",
                "instance_type": self.name,
                "pricing": "on_demand",
                "price_usd_per_h": self.price_usd_per_h(),
                "as_of": as_of,
                "source": f"{self.source}; capex and power at a utilisation of {self.utilisation_ratio}",
                "licence": "own figures",
            }
        )
