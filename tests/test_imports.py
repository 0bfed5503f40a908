"""The import graph of the wheel."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = ("roofcast.data", "roofcast.features", "roofcast.training", "roofcast.serving", "roofcast.client")


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports for type checkers, and those inside of functions, count."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
