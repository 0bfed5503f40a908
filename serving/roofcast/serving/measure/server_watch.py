"""Watch of a running inference server: scrapes of its metrics for a while, and what it says of itself.

It sends nothing but GET requests.
"""

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from roofcast.data.errors import InputError, NotReadyError, SchemaError
from roofcast.data.importers.client_runs import join_cells, model_cells
from roofcast.data.importers.server_metrics import Scrape, parse_scrape
from roofcast.serving.measure.guidellm import KEY_VARIABLE, check_target, endpoint_headers

TIMEOUT_S: Final = 10.0
MAX_BYTE: Final = 64 * 2**20
MIN_SCRAPE: Final = 2
_SWITCH: Final = {"true": "on", "false": "off"}


@dataclass
class ServerWatch:
    """Scrapes of one server.

    - `url`: Base URL; a path of ``/metrics`` or ``/v1`` at its end is left out.
    - `model`: Name of the served model whose metrics are read, where there are several.
    - `clock`, `sleep`: Monotonic seconds, and the wait for some.
    """

    url: str
    key: str = ""
    login: str = ""
    model: str = ""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    n_missed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_target(self.url)
        self.url = self.url.rstrip("/").removesuffix("/metrics").removesuffix("/v1").rstrip("/")

    def scrape(self) -> Scrape:
        """Return the metrics now.

        Raises `NotReadyError` if the server does not answer; `InputError` if the URL is malformed, the server refuses
        the key, it has no metrics, or those of several models.
        """
        response = self._get("/metrics")
        if response.status_code != 200:
            cure = "start SGLang with --enable-metrics, or correct the URL"
            if response.status_code in (401, 403):
                cure = f"set {KEY_VARIABLE} to its API key"
            raise InputError("url", f"{self.url}/metrics answers {response.status_code}; {cure}")
        scrape = parse_scrape(response.text, self.clock(), f"{self.url}/metrics", self.model)
        if len(scrape.models) > 1:
            raise InputError("served_model", f"must be one of {', '.join(scrape.models)}: the server has several")
        return scrape

    def watch(self, duration_s: float, interval_s: float, progress: Callable[[float], None]) -> list[Scrape]:
        """Return scrapes over a time; scrapes that fail are left out, and an interrupt ends it early.

        `progress`: called with the seconds that have passed, after each interval. Raises `NotReadyError` if the
        server answers fewer than two scrapes.
        """
        scrapes = [self.scrape()]
        start_s = scrapes[0].time_s
        try:
            while (left_s := start_s + duration_s - self.clock()) > 0:
                self.sleep(min(interval_s, left_s))
                try:
                    scrapes.append(self.scrape())
                except (NotReadyError, InputError):
                    self.n_missed += 1
                progress(min(self.clock() - start_s, duration_s))
        except KeyboardInterrupt:
            pass
        if len(scrapes) < MIN_SCRAPE:
            raise NotReadyError(f"{self.url}/metrics answered once and {self.n_missed} times not; watch longer")
        return scrapes

    def settings(self, scrape: Scrape) -> dict[str, Any]:
        """Return the columns that the server states; what it does not state is left out."""
        listed = self._json("/v1/models").get("data")
        served = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        named = scrape.models[0] if scrape.models else ""
        entry = next((one for one in served if one.get("id") == named), served[0] if served else {})
        info = self._json("/server_info") if scrape.engine == "sglang" else {}
        names = [str(one) for one in (info.get("model_path"), entry.get("root"), entry.get("id"), named) if one]
        name = next((one for one in names if "model" in model_cells(one)), next(iter(names), ""))
        version = info.get("version") or self._json("/version").get("version")
        cache = scrape.labels("vllm:cache_config_info")
        dtype = cache.get("cache_dtype", str(info.get("kv_cache_dtype", "")))
        radix = str(info.get("disable_radix_cache", "")).lower()
        numbers = {
            "gpu_memory_utilization": cache.get("gpu_memory_utilization", info.get("mem_fraction_static")),
            "cpu_offload_gib": cache.get("cpu_offload_gb"),
            "max_context_token": entry.get("max_model_len"),
            "max_num_seqs": info.get("max_running_requests"),
            "chunk_size_token": info.get("chunked_prefill_size"),
            **{one: info.get(f"{one}_size") for one in ("tp", "pp", "dp", "ep")},
        }
        caching = {"true": "off", "false": "on"}.get(radix) or _SWITCH.get(
            cache.get("enable_prefix_caching", "").lower(), ""
        )
        return join_cells(
            model_cells(name),
            {
                "engine": scrape.engine,
                "engine_version": str(version or ""),
                "kv_precision": "fp8" if dtype.startswith("fp8") else "",
                "prefix_caching": caching,
                "date": dt.datetime.now(dt.UTC).date().isoformat(),
                "software": "roofcast watch",
                **{column: number for column, value in numbers.items() if (number := _positive(value))},
            },
        )

    def _json(self, path: str) -> dict[str, Any]:
        try:
            response = self._get(path)
            answer = response.json() if response.status_code == 200 else {}
        except (NotReadyError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def _get(self, path: str) -> Any:
        import httpx  # noqa: PLC0415  (only commands that ask a server)

        headers = {**endpoint_headers(self.key, self.login), "Accept": "text/plain, application/json"}
        try:
            response = httpx.get(f"{self.url}{path}", headers=headers, timeout=TIMEOUT_S)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError("url", f"must be a URL such as http://127.0.0.1:8000, got {self.url[:200]!r}") from error
        except httpx.HTTPError as error:
            raise NotReadyError(f"{self.url}{path} does not answer ({error}); start the server") from error
        if len(response.content) > MAX_BYTE:
            raise SchemaError("", f"must be at most {MAX_BYTE} bytes", f"{self.url}{path}")
        return response


def _positive(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if 0 < number < float("inf") else 0.0
