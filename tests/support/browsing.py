"""Debian's Chromium, without a window, driven as a person would drive it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.common.exceptions import SessionNotCreatedException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""Where pictures are left, as artifacts of the run."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=900,1100",
)


_MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
needs_browser = pytest.mark.skipif(
    bool(_MISSING), reason=f"no browser here: {' and '.join(_MISSING)} not installed"
)


@contextmanager
def browser() -> Iterator[Chrome]:
    """Run a browser with a profile of its own while the block runs."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = _started(options)
        try:
            yield driver
        finally:
            driver.quit()


def prefer(driver: Chrome, *, dark: bool) -> None:
    """Ask pages for dark or light colours, as the setting of a system does."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def _started(options: ChromeOptions, *, attempts: int = 3) -> Chrome:
    """Start the browser; where a busy machine was too slow for its own start, once more."""
    try:
        return Chrome(options=options, service=Service(shutil.which("chromedriver")))
    except SessionNotCreatedException:
        if attempts == 1:
            raise
        return _started(options, attempts=attempts - 1)


def contrast(driver: Chrome, selector: str) -> float:
    """Return the contrast of an element's text with the ground below it."""
    ratio: float = driver.execute_script(
        """
        const luminance = (colour) => {
          const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => {
            const s = v / 255;
            return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
          });
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const clear = /rgba\\(.*, 0\\)|transparent/;
        const text = document.querySelector(arguments[0]);
        let ground = text;
        while (clear.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
        const [a, b] = [
          luminance(getComputedStyle(text).color),
          luminance(getComputedStyle(ground).backgroundColor),
        ].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
        """,
        selector,
    )
    return ratio
