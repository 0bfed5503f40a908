"""GuideLLM as the load generator: its command line for one run, and the check of the endpoint that it will load.

Options are those of `guidellm run` of version 0.8.1; earlier versions have `guidellm benchmark` with others.
"""

import base64
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from roofcast.data.errors import InputError, NotReadyError, choice_error
from roofcast.serving.measure.plan import PlannedRun

INSTALL: Final = "install it, best into an environment of its own: pip install 'guidellm>=0.8'"
PATHS: Final = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
"""Paths of requests; those of a chat add the tokens of the model's chat template."""

KEY_VARIABLE: Final = "ROOFCAST_ENDPOINT_KEY"
"""Environment variable of the endpoint's API key; another than OpenAI's, whose key no other server shall get."""

LOGIN_VARIABLE: Final = "ROOFCAST_ENDPOINT_LOGIN"
"""Environment variable of the endpoint's user and password, with a colon between."""

_GUIDELLM_KEY_VARIABLE: Final = "GUIDELLM__SPEC__BACKEND__API_KEY"
_GUIDELLM_TARGET_VARIABLE: Final = "GUIDELLM__SPEC__BACKEND__TARGET"
"""`GUIDELLM__` is the prefix of the fields of GuideLLM's `BenchmarkScenario`, and `__` separates nested ones."""

_CHECK_S: Final = 10.0
_REFUSED: Final = (401, 403)
_LOGIN: Final = re.compile(r"(?:(?<=://)|^)[^/?#\s]*@")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    - `target`: Base URL, without ``/v1``.
    - `model`: Name of the served model.
    - `tokenizer`: Hugging Face name or folder of its tokenizer, which makes prompts of a given length.
    - `requests`: Key of `PATHS`.
    - `has_login`: Whether the environment has the target, with user and password, so that no command line has it.
    """

    target: str
    model: str
    tokenizer: str
    requests: str = "completions"
    has_login: bool = False

    def __post_init__(self) -> None:
        check_target(self.target)
        for name, value in (("target", self.target), ("served_model", self.model), ("tokenizer", self.tokenizer)):
            if "," in value:
                raise InputError(
                    name, f"has a comma, which separates GuideLLM's settings: {without_login(value)[:200]!r}"
                )
        if self.requests not in PATHS:
            raise choice_error("requests", self.requests, PATHS)

    @property
    def setup(self) -> dict[str, str]:
        """What makes reports of one endpoint comparable."""
        target = self.target.rstrip("/")
        names = {"served_model": self.model, "tokenizer": self.tokenizer, "requests": self.requests}
        return {"target": target, **names}


def find_guidellm(command: str = "") -> str:
    """Return the path of the `guidellm` command, of `PATH` unless a path is given.

    Raises `InputError` if it is missing; says how to install it.
    """
    executable = shutil.which(command or "guidellm")
    if executable is None:
        where = f"there is no command at {command}" if command else "no `guidellm` command is on PATH"
        raise InputError("guidellm", f"{where}; {INSTALL}, and give its path with --guidellm")
    return executable


def find_key() -> str:
    """Return the API key of the environment, empty if there is none.

    Raises `InputError` if no HTTP header can have it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(KEY_VARIABLE, "has characters that an HTTP header cannot have; set it again")
    return key


def find_login() -> str:
    """Return user and password of the environment as they stand in a URL, `user:password`; empty if there is none.

    Raises `InputError` if they have another form, or there is an API key too.
    """
    login = os.environ.get(LOGIN_VARIABLE, "").strip()
    if not login:
        return ""
    user, colon, password = login.partition(":")
    if not (user and colon and login.isprintable()):
        raise InputError(LOGIN_VARIABLE, "must be user:password, in characters that can be printed")
    if find_key():
        raise InputError(LOGIN_VARIABLE, f"cannot be set beside {KEY_VARIABLE}: a request has one of the two")
    return f"{quote(user, safe='')}:{quote(password, safe='')}"


def secret_environment(key: str, target: str, login: str) -> dict[str, str]:
    """Return the environment variables that give secrets to GuideLLM: a command line is visible to other users."""
    variables = {_GUIDELLM_KEY_VARIABLE: key} if key else {}
    return variables | ({_GUIDELLM_TARGET_VARIABLE: target.replace("://", f"://{login}@", 1)} if login else {})


def check_target(target: str) -> None:
    """Raise `InputError` if an address has a login, which the process list would show to every user."""
    if without_login(target) != target:
        problem = "has a user or password, which the process list shows to every user"
        raise InputError("target", f"{problem}; leave it out, and set {LOGIN_VARIABLE} to user:password")


def without_login(text: str) -> str:
    """Return the text without user and password of its URLs.

    Examples
    --------
    >>> without_login("GET http://me:secret@gpu-7:8000/v1/models failed")
    'GET http://gpu-7:8000/v1/models failed'
    """
    return _LOGIN.sub("", text)


def endpoint_headers(key: str, login: str) -> dict[str, str]:
    """Return the header of an endpoint's API key, or of user and password; none without either."""
    if login:
        return {"Authorization": f"Basic {base64.b64encode(unquote(login).encode()).decode()}"}
    return {"Authorization": f"Bearer {key}"} if key else {}


def find_model(target: str, key: str = "", login: str = "", model: str = "") -> str:
    """Return the name of the endpoint's model: the given one, or the only one that it serves.

    Raises `InputError` if the address is malformed, or the endpoint serves another model, or several and none is
    named; `NotReadyError` if the endpoint does not answer, or not as one of OpenAI's.
    """
    served = list_models(target, key, login)
    if model in served or (model and not served):
        return model
    listed = ", ".join(served[:5])
    if model or len(served) != 1:
        problem = f"no {model!r} is served" if model else f"{len(served)} models are served"
        raise InputError("served_model", f"{problem} at {target}; name one of: {listed or 'none is listed'}")
    return served[0]


def list_models(target: str, key: str = "", login: str = "") -> list[str]:
    """Return the models that an endpoint lists.

    Raises `InputError` if the address is malformed, has a login or is roofcast's own, what answers there serves no
    models, or it refuses the key; `NotReadyError` if nothing answers.
    """
    import httpx  # noqa: PLC0415  (only this command asks an endpoint)

    check_target(target)
    headers = endpoint_headers(key, login)
    url = f"{target.rstrip('/')}/v1/models"
    try:
        response = httpx.get(url, headers=headers, timeout=_CHECK_S)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InputError("target", f"must be a URL such as http://127.0.0.1:8000, got {target[:200]!r}") from error
    except httpx.HTTPError as error:
        cure = "start the server, or correct --target, which is the URL without /v1"
        raise NotReadyError(f"target: {url} does not answer ({error}); {cure}") from error
    if _is_roofcast(response):
        cure = "give the address of the server that runs the LLM, such as vLLM's"
        raise InputError("target", f"{target} is roofcast, which predicts and serves no LLM; {cure}")
    if response.status_code in _REFUSED:
        name, what = (LOGIN_VARIABLE, "user:password") if login else (KEY_VARIABLE, "the endpoint's API key")
        problem = "is refused" if headers else "is not set"
        raise InputError(name, f"{problem}: {target} answers {response.status_code}; set it to {what}")
    try:
        return [str(entry["id"]) for entry in response.raise_for_status().json()["data"]]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        problem = f"what answers at {url} lists no models as OpenAI's API does (status {response.status_code})"
        raise InputError("target", f"{problem}; give the base URL of an inference server, without /v1") from error


def _is_roofcast(response: Any) -> bool:
    try:
        body = response.json()
    except ValueError:
        return False
    if isinstance(body, list):
        return bool(body) and isinstance(body[0], dict) and {"lineage", "n_layer"} <= body[0].keys()
    return isinstance(body, dict) and str(body.get("type", "")).startswith("urn:roofcast:")


def run_command(
    executable: str, endpoint: Endpoint, run: PlannedRun, report: Path, *, max_s: float, seed: int
) -> list[str]:
    """Return the command of one run, which writes a JSON report.

    `max_s`: time after which GuideLLM ends the run. `seed`: seed of prompts and arrivals; GuideLLM's own is always
    42. Raises `InputError` if the path of the report has a comma.
    """
    if "," in str(report):
        raise InputError("out", f"has a comma, which separates GuideLLM's settings: {str(report)!r}")
    profile = f"kind=concurrent,streams={run.concurrency}"
    if not run.concurrency:
        profile = f"kind=poisson,rate={run.request_rate:g}"
    tokenizer = f"kind=huggingface_auto,model={endpoint.tokenizer}"
    target = "" if endpoint.has_login else f"target={endpoint.target},"
    backend = f"kind=openai_http,{target}model={endpoint.model}"
    lengths = f"prompt_tokens={run.n_input_token},output_tokens={run.n_output_token}"
    options: Sequence[tuple[str, str]] = (
        ("--backend", f"{backend},request_format={PATHS[endpoint.requests]}"),
        ("--tokenizer", tokenizer),
        ("--data", f"kind=synthetic_text,{lengths}"),
        ("--profile", profile),
        ("--constraint", f"kind=max_requests,count={run.n_request}"),
        ("--constraint", f"kind=max_duration,seconds={max_s:g}"),
        ("--seed", f"kind=static,value={seed}"),
        ("--output", f"kind=json,path={report}"),
    )
    return [executable, "run", *(part for option in options for part in option), "--disable-console-interactive"]
