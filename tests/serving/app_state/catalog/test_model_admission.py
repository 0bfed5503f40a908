import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.serving.app_state.catalog.model_admission import with_configs
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


@pytest.mark.parametrize(
    "name",
    [
        "ll\u0430ma-3.1-8b",
        "\u041e\u0420\u0422-125\u041c",
        "\u03bfpt-125m",
        "\uff4clama-3.1-8b",
        "llama\u200b-3.1-8b",
        "llam\u00e1-3.1-8b",
        "lla\u0301ma",
        "\ua4e1lama-3.1-8b",
    ],
)
def test_a_name_that_looks_like_another_is_not_admitted(name: str) -> None:
    """Cyrillic, all of it too, Greek, full width, invisible, accented, combined and Lisu characters."""
    with pytest.raises(InputError, match="; use an ASCII letter"):
        with_configs(load_catalog(), [(name, CONFIG)])


def test_names_in_scripts_without_look_alikes_are_admitted() -> None:
    catalog, new = with_configs(load_catalog(), [("\u5343\u95ee-8b", CONFIG)])
    assert new[0][0] is catalog.models["\u5343\u95ee-8b"]
