"""Missing, unknown, expired, revoked and insufficient API keys are refused in every form."""

import datetime as dt
import json

import pytest

from tests.serving.http_client import Client, a_measurement, problem_of

MEASURE, PROMOTE, RETRAIN = "/v1/measurements", "/v1/predictor", "/v1/retrainings"
WRITES = (("POST", MEASURE, {"rows": [a_measurement()]}), ("POST", RETRAIN, None), ("PUT", PROMOTE, {"version": "1"}))


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_writing_needs_a_valid_key_with_the_scope(local: Client, method: str, path: str, body: object) -> None:
    content = "" if body is None else json.dumps(body)
    expired = local.make_key("admin", dt.timedelta(microseconds=1))
    name = f"revoked{path.replace('/', '-')}"
    revoked = local.make_key("admin", name=name)
    local.keys.revoke(name)
    valid = local.make_key("admin")
    insufficient = [local.make_key("read")] + ([local.make_key("write")] if path == PROMOTE else [])

    def status(authorization: str | None) -> int:
        headers = {"content-type": "application/json"} if content else {}
        headers |= {} if authorization is None else {"authorization": authorization}
        response = local.send(method, path, content, headers)
        if response.status_code >= 400:
            assert "www-authenticate" in response.headers or response.status_code not in {401, 403}
            problem_of(response, response.status_code)
        return response.status_code

    local.use_key(None)
    try:
        invalid = [None, "", "Bearer", "Bearer ", f"Basic {valid}", valid, f"Bearer {valid}x", f"Bearer {valid[:-1]}"]
        invalid += [
            f"Bearer {expired}",
            f"Bearer {revoked}",
            "Bearer " + "x" * 8_000,
        ]
        assert {status(one) for one in invalid} == {401}
        assert {status(f"Bearer {one}") for one in insufficient} == {403}
        if path != RETRAIN:
            assert status(f"bearer {valid}") in {200, 201}
    finally:
        local.use_key(valid)
