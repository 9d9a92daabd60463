"""A real headless browser: Debian's Chromium, with a profile of its own and no network but loopback."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WHY_NOT = "no chromium and chromedriver: apt-get install chromium chromium-driver"
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
WIDTHS = (1280, 390)
LOOKS = ("light", "dark")


def is_there() -> bool:
    """Returns whether there is a browser."""
    return bool(CHROMIUM and DRIVER)


@contextlib.contextmanager
def browser() -> Iterator[object]:
    """Yields a browser in a window of 1280 by 900."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    with tempfile.TemporaryDirectory(prefix="trigmon-browser-") as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def look(driver, width: int, scheme: str, height: int = 900) -> None:
    """Makes the page as wide as on a device, in light or dark."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def photograph(driver, path) -> None:
    """Writes the whole page as a picture."""
    import base64

    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
    path.write_bytes(base64.b64decode(shot["data"]))


def full_height(driver, width: int, scheme: str) -> None:
    """Makes the window as high as the page."""
    look(driver, width, scheme)
    height = driver.execute_script("return Math.ceil(document.documentElement.scrollHeight)")
    look(driver, width, scheme, max(400, int(height)))
