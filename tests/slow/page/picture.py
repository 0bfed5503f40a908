"""Picture of the page for the README: ``python -m tests.slow.page.picture URL FILE.webp`` while a service runs."""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.slow.page.tabs import PATIENCE_MS

SIZE = (1440, 1290)
WIDTH = 1200


def take_picture(url: str, file: Path) -> None:
    """Write a picture of the answer to the page's first question."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        page.set_default_timeout(PATIENCE_MS)
        page.goto(url)
        page.locator("#confidence-chart .canvas[data-drawn]").wait_for()
        page.locator("#pareto .canvas[data-drawn]").wait_for()
        shot = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    shot.resize((WIDTH, WIDTH * SIZE[1] // SIZE[0]), Image.Resampling.LANCZOS).save(file, "WEBP", quality=82)


if __name__ == "__main__":
    take_picture(sys.argv[1], Path(sys.argv[2]))
