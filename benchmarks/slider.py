"""Time from a moved slider to the new ranking: ``python -m benchmarks.slider URL`` while a service runs.

Chromium moves the slider of the users; the clock runs in the page, from the input event to the frame after the one
in which the new alternatives are painted. The last line is JSON.
"""

import json
import os
import shutil
import statistics
import sys
from typing import Any, Final

from playwright.sync_api import sync_playwright

N_MOVE: Final = 10
PATIENCE_MS: Final = 120_000
SIZE: Final = {"width": 1440, "height": 900}
SLIDER: Final = "users-range"

MOVE: Final = """
(id) => new Promise((resolve) => {
  const range = document.getElementById(id), answer = document.getElementById("answer");
  const start = performance.now();
  const observer = new MutationObserver(() => {
    if (answer.classList.contains("outdated")) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
  });
  range.value = Number(range.value) + Number(range.step || 1) * 3;
  range.dispatchEvent(new Event("input", { bubbles: true }));
  observer.observe(answer, { attributes: true, attributeFilter: ["class"] });
})
"""


def measure(url: str, n_move: int = N_MOVE) -> dict[str, Any]:
    """Return the milliseconds of each move, their median, and the load of the machine before and after."""
    load = [os.getloadavg()[0]]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(PATIENCE_MS)
        page.goto(url)
        page.locator("#pareto .canvas[data-drawn]").wait_for()
        page.locator("#results[aria-busy=false]").wait_for()
        moves_ms = [page.evaluate(MOVE, SLIDER) for _ in range(n_move)]
        browser.close()
    load.append(os.getloadavg()[0])
    return {"median_ms": statistics.median(moves_ms), "moves_ms": moves_ms, "load_average": load}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
