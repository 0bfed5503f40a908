from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.features.examples import example_descriptors


def test_the_example_has_every_descriptor() -> None:
    assert set(example_descriptors()) == set(DESCRIPTOR_NAMES)
    assert {values.shape for values in example_descriptors().values()} == {(1,)}
