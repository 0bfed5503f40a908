from __future__ import annotations

import pytest

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.serving.app_state.catalog.registered_models import with_configs
from roofcast.serving.composition import Service
from tests.serving.http_client import CONFIG


def test_a_name_that_differs_only_in_case_is_refused(service: Service) -> None:
    service.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    with pytest.raises(InputError, match="the name 'MINE/One' is taken"):
        with_configs(service.catalog, [("MINE/One", CONFIG | {"vocab_size": 7})])


def test_two_new_models_of_one_shape_share_a_lineage(service: Service) -> None:
    shape = CONFIG | {"num_hidden_layers": 39}
    _, new = with_configs(service.catalog, [("a", shape), ("b", shape | {"vocab_size": 1000})])
    assert [spec.lineage for spec, _ in new] == ["a", "a"]
