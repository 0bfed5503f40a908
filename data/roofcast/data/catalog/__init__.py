"""Catalogue of models, accelerators and offers: facts, each with its source.

The tables have the units of data sheets, named in their columns. Memory is in GiB throughout: DRAM and HBM come in
binary sizes, and a device sold with "80 GB" reports about 80 x 2**30 bytes.
"""

from roofcast.data.catalog.catalog import Catalog, load_catalog

__all__ = ["Catalog", "load_catalog"]
