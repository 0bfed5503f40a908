from pathlib import Path

import httpx
import pytest

from roofcast.data.errors import InputError, NotReadyError
from roofcast.serving.measure import guidellm
from roofcast.serving.measure.guidellm import (
    Endpoint,
    find_guidellm,
    find_key,
    find_login,
    find_model,
    list_models,
    run_command,
    secret_environment,
)
from roofcast.serving.measure.plan import PlannedRun
from tests.serving.http_client import Client

URL = "http://127.0.0.1:1"


def test_the_command_states_endpoint_lengths_load_and_limits() -> None:
    endpoint = Endpoint(URL, "tiny", "/models/tiny", "chat")
    command = run_command(
        "guidellm", endpoint, PlannedRun(64, 16, request_rate=0.5), Path("/out/a.json"), max_s=90.0, seed=7
    )
    assert command[:4] == ["guidellm", "run", "--backend", f"kind=openai_http,target={URL},model=tiny,"
                           "request_format=/v1/chat/completions"]  # fmt: skip
    assert command[4:] == [
        "--tokenizer", "kind=huggingface_auto,model=/models/tiny",
        "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16",
        "--profile", "kind=poisson,rate=0.5",
        "--constraint", "kind=max_requests,count=20",
        "--constraint", "kind=max_duration,seconds=90",
        "--seed", "kind=static,value=7",
        "--output", "kind=json,path=/out/a.json",
        "--disable-console-interactive",
    ]  # fmt: skip


def test_commas_and_unknown_paths_are_refused() -> None:
    with pytest.raises(InputError, match="tokenizer: has a comma"):
        Endpoint(URL, "tiny", "a,b")
    with pytest.raises(InputError, match="requests: must be one of completions, chat"):
        Endpoint(URL, "tiny", "tiny", "embeddings")
    with pytest.raises(InputError, match="out: has a comma"):
        run_command(
            "guidellm", Endpoint(URL, "tiny", "tiny"), PlannedRun(64, 16, 1), Path("/a,b/c.json"), max_s=9.0, seed=7
        )


def test_a_missing_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="pip install"):
        find_guidellm()
    with pytest.raises(InputError, match="there is no command at"):
        find_guidellm(str(tmp_path / "guidellm"))


def test_the_only_served_model_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guidellm, "list_models", lambda *_: ["tiny"])
    assert find_model(URL) == find_model(URL, model="tiny") == "tiny"
    with pytest.raises(InputError, match=r"no 'large' is served at .*; name one of: tiny"):
        find_model(URL, model="large")
    monkeypatch.setattr(guidellm, "list_models", lambda *_: ["tiny", "large"])
    with pytest.raises(InputError, match="2 models are served"):
        find_model(URL)


def test_an_endpoint_that_does_not_answer_is_an_error_with_its_cure() -> None:
    with pytest.raises(NotReadyError, match="start the server, or correct --target"):
        list_models(URL)
    with pytest.raises(InputError, match="target: must be a URL"):
        list_models("127.0.0.1:1")


def test_the_setup_of_an_endpoint_states_what_makes_reports_comparable() -> None:
    setup = Endpoint(f"{URL}/", "tiny", "/models/tiny").setup
    assert setup == {"target": URL, "served_model": "tiny", "tokenizer": "/models/tiny", "requests": "completions"}


def test_the_key_is_sent_and_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str | None] = []

    def answer(url: str, headers: dict[str, str], timeout: float) -> httpx.Response:
        keys.append(headers.get("Authorization"))
        request = httpx.Request("GET", url)
        if keys[-1] == "Bearer k1":
            return httpx.Response(200, request=request, json={"data": [{"id": "tiny"}]})
        return httpx.Response(403 if keys[-1] else 401, request=request)

    monkeypatch.setattr(httpx, "get", answer)
    assert list_models(URL, "k1") == ["tiny"]
    with pytest.raises(InputError, match=rf"^ROOFCAST_ENDPOINT_KEY: is not set: {URL} answers 401; set"):
        list_models(URL)
    with pytest.raises(InputError, match=rf"^ROOFCAST_ENDPOINT_KEY: is refused: {URL} answers 403; set"):
        list_models(URL, "k2")
    with pytest.raises(InputError, match=r"^ROOFCAST_ENDPOINT_LOGIN: is refused"):
        list_models(URL, login="me:a%40b")
    assert keys == ["Bearer k1", None, "Bearer k2", "Basic bWU6YUBi"]


def test_a_login_comes_from_the_environment_and_goes_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_login() == ""
    monkeypatch.setenv("ROOFCAST_ENDPOINT_LOGIN", "me:a@b")
    assert find_login() == "me:a%40b"
    assert secret_environment("", URL, find_login()) == {
        "GUIDELLM__SPEC__BACKEND__TARGET": "http://me:a%40b@127.0.0.1:1"
    }
    command = run_command(
        "guidellm", Endpoint(URL, "m", "t", has_login=True), PlannedRun(1, 1, 1), Path("/a"), max_s=1.0, seed=1
    )
    assert "target" not in " ".join(command)
    monkeypatch.setenv("ROOFCAST_ENDPOINT_KEY", "k1")
    with pytest.raises(InputError, match="cannot be set beside ROOFCAST_ENDPOINT_KEY"):
        find_login()
    monkeypatch.setenv("ROOFCAST_ENDPOINT_LOGIN", "me")
    with pytest.raises(InputError, match="must be user:password"):
        find_login()


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, [{"id": "a", "lineage": "a", "n_layer": 1}], "is roofcast, which predicts and serves no LLM"),
        (401, {"type": "urn:roofcast:problem:unauthorized"}, "is roofcast, which predicts and serves no LLM"),
        (404, {"detail": "Not Found"}, "lists no models as OpenAI's API does .status 404.; give the base URL"),
        (200, "<html>", "lists no models as OpenAI's API does"),
    ],
)
def test_what_serves_no_model_is_refused(
    monkeypatch: pytest.MonkeyPatch, status: int, body: object, problem: str
) -> None:
    answer = httpx.Response(status, request=httpx.Request("GET", URL), json=body)
    monkeypatch.setattr(httpx, "get", lambda *_, **__: answer)
    with pytest.raises(InputError, match=f"^target: .*{problem}"):
        list_models(URL)


def test_a_roofcast_service_is_no_endpoint(shared: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = shared.get("/v1/models")
    monkeypatch.setattr(httpx, "get", lambda *_, **__: answer)
    with pytest.raises(InputError, match="is roofcast"):
        list_models(URL)


def test_the_key_comes_from_the_environment_and_goes_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert secret_environment(find_key(), URL, "") == {}
    monkeypatch.setenv("ROOFCAST_ENDPOINT_KEY", " k1 \n")
    assert secret_environment(find_key(), URL, "") == {"GUIDELLM__SPEC__BACKEND__API_KEY": "k1"}
    monkeypatch.setenv("ROOFCAST_ENDPOINT_KEY", "k1\nk2")
    with pytest.raises(InputError, match="characters that an HTTP header cannot have") as raised:
        find_key()
    assert "k1" not in str(raised.value)


@pytest.mark.parametrize("target", ["http://me:secret@127.0.0.1:1", "me:secret@127.0.0.1:1", "ftp://me:secret@a"])
def test_no_message_has_the_password_of_a_url(target: str) -> None:
    with pytest.raises(InputError, match=r"which the process list shows .* set ROOFCAST_ENDPOINT_LOGIN") as raised:
        list_models(target)
    assert "secret" not in str(raised.value)
