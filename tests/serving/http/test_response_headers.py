import re

import pytest

from roofcast.serving.http.request_log import CSP
from tests.serving.http_client import Client, problem_of


@pytest.mark.parametrize("path", ["/", "/page.js", "/docs", "/healthz", "/v1/models", "/v1/nothing", "/openapi.json"])
def test_no_response_is_sniffed_or_framed(path: str, shared: Client) -> None:
    headers = shared.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers[CSP]
    assert "frame-ancestors 'none'" in headers[CSP]


def test_the_documentation_runs_its_own_script_alone(shared: Client) -> None:
    response = shared.get("/docs")
    (scripts,) = [part for part in response.headers[CSP].split("; ") if part.startswith("script-src")]
    assert re.fullmatch(r"script-src 'self' 'sha256-[A-Za-z0-9+/]{43}='", scripts)
    for name in re.findall(r'(?:src|href)="([^"]+)"', response.text):
        assert shared.get(name).status_code == 200


def test_no_redirect_echoes_the_host(shared: Client) -> None:
    for path in ("/v1/offers/", "/docs/", "/healthz/"):
        response = shared.send("GET", path, headers={"host": "evil.example"})
        problem_of(response, 404)
        assert "evil.example" not in str(response.headers) + response.text
