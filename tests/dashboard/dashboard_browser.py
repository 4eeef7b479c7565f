"""A real browser: Debian's chromium and chromium-driver."""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dashboard_servers import Running
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
Start = Callable[..., Running]


class Browser:
    """A tab that is looked at; what goes wrong in it is kept."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)

    def show(self, server: Running) -> None:
        """The page of a server, complete."""
        self.open(server.entrance)
        self.until(lambda: self.one("#table tbody button") and "loading" not in self.text("#state"))

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def until(self, condition: Callable[[], Any], seconds: float = 20) -> Any:
        return WebDriverWait(self.driver, seconds, 0.05, ignored_exceptions=(Exception,)).until(lambda _: condition())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def emulate(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def complaints(self) -> list[dict[str, Any]]:
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def barriers(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        found = importlib.util.find_spec("axe_core_python")
        assert found is not None
        assert found.origin is not None
        self.run((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8") + "\nwindow.axe = axe;")
        result = self.driver.execute_async_script("axe.run(document).then(arguments[0])")
        return [
            f"{rule['id']} ({rule['impact']}): {[node['html'][:120] for node in rule['nodes'][:3]]}"
            for rule in result["violations"]
            if rule["impact"] in ("serious", "critical")
        ]


def start_browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    found.set_script_timeout(60)
    yield found
    found.quit()


def new_tab(driver: webdriver.Chrome) -> Iterator[Browser]:
    driver.switch_to.new_window("tab")
    found = Browser(driver)
    found.resize(1280, 1000)
    found.emulate("light")
    yield found
    # The server of a test ends before its tab.
    complaints = [entry for entry in found.complaints() if "ERR_CONNECTION_REFUSED" not in entry["message"]]
    driver.delete_all_cookies()
    driver.close()
    driver.switch_to.window(driver.window_handles[0])
    assert complaints == [], complaints
