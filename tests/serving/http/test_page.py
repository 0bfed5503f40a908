"""The page at ``/``: all its files come from the service, and it runs no other code."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from roofcast.serving.recommend.demand.presets import PRESETS
from tests.serving.http_client import Client

LINK = re.compile(r'(?:href|src)="([^"]+)"')


def test_the_page_and_its_links_come_from_the_service(shared: Client) -> None:
    page = shared.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    names = set(LINK.findall(page.text)) - {"data:,"}
    assert names == {"page.css", "page.js", "docs"}
    for name in names:
        assert shared.get(f"/{name}").status_code == 200
    assert shared.send("HEAD", "/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css"])
def test_the_content_security_policy_admits_only_own_files(shared: Client, path: str) -> None:
    answer = shared.get(path)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"https?://|innerHTML|\bon\w+=|\beval\b|style=", answer.text)


def test_ids_and_fields_in_the_script_exist(shared: Client) -> None:
    page, script = shared.get("/").text, shared.get("/page.js").text
    ids = set(re.findall(r'id="(\w+)"', page))
    assert set(re.findall(r'(?:at|number)\("(\w+)"\)', script)) <= ids
    document = shared.app.openapi()
    schemas = document["components"]["schemas"]
    assert set(re.findall(r"\be\.(\w+)", script)) <= set(schemas["EntryResponse"]["properties"])
    assert set(re.findall(r"\bf\.(\w+)", script)) <= set(schemas["FleetResponse"]["properties"])
    assert set(re.findall(r"\br\.(\w+)", script)) <= set(schemas["RejectionResponse"]["properties"])
    assert set(re.findall(r"\banswer\.(\w+)", script)) - {"detail"} <= set(
        schemas["RecommendationResponse"]["properties"]
    )
    assert {f"/{path}" for path in re.findall(r'ask\("([\w/]+)"', script)} <= set(document["paths"])


def run_node(script: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    run_result = subprocess.run([node, "-"], input=script, capture_output=True, text=True, check=False)  # noqa: S603
    assert run_result.returncode == 0, run_result.stderr
    return run_result.stdout


FAKE_BROWSER = """
const parts = {}, told = [];
const part = () => ({ value: "", on: {}, replaceChildren() {}, addEventListener(kind, act) { this.on[kind] = act; },
  classList: { is: false, toggle(name, is) { this.is = is; }, contains() { return this.is; } } });
globalThis.document = { getElementById: (id) => (parts[id] ??= part()) };
globalThis.Option = class {};
globalThis.fetch = async (path, { headers }) => headers.authorization === "Bearer good"
  ? { ok: true, json: async () => (path === "v1/models" ? [{ id: "a" }] : { version: "7" }) }
  : { ok: false, json: async () => ({ detail: "this takes a key" }) };
const tell_now = () => console.log(`${parts.predictor?.innerText ?? ""}|${parts.status?.innerText ?? ""}`);
setTimeout(() => { tell_now(); parts.key.value = "good"; parts.key.on.change(); }, 10);
setTimeout(tell_now, 50);
"""


def test_the_page_reloads_its_data_once_a_key_is_entered(shared: Client) -> None:
    output = run_node(FAKE_BROWSER + shared.get("/page.js").text.replace('"use strict";', ""))
    assert output.splitlines() == ["|this takes a key", "Predictor version 7.|"]


def test_the_page_lists_every_preset(shared: Client) -> None:
    options = shared.get("/").text.partition('<select id="preset">')[2].partition("</select>")[0]
    assert re.findall(r"<option>(\w+)</option>", options) == list(PRESETS)
