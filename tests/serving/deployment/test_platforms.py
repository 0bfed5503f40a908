import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.errors import InputError
from roofcast.serving.deployment.platforms import LONGEST_NAME, check_argument, dns_name, label_value


@given(st.text(max_size=300))
def test_every_text_becomes_a_dns_name(text: str) -> None:
    name = dns_name(text)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= LONGEST_NAME
    assert dns_name(name) == name


@given(st.text(alphabet="abc-", min_size=60, max_size=80), st.text(alphabet="xyz", min_size=1, max_size=5))
def test_long_names_that_differ_at_the_end_have_different_dns_names(text: str, end: str) -> None:
    assert dns_name(text) != dns_name(text + end)


@given(st.text(max_size=300))
def test_every_text_becomes_a_label(text: str) -> None:
    value = label_value(text)
    assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", value)
    assert len(value) <= 63


@pytest.mark.parametrize("text", ["-x", "--trust-remote-code", "a\nb", "a\x00b", "\x1b[31m"])
def test_arguments_that_a_program_would_misread_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="model: must"):
        check_argument("model", text)
