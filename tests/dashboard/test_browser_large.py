"""A study of a hundred thousand chains in a real browser."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard_browser import Browser
from dashboard_servers import Running

from chainscout.study import Study

pytestmark = pytest.mark.system

Start = Callable[..., Running]


@pytest.mark.parametrize("target", [0.01, None])
def test_a_hundred_thousand_chains(
    browser: Browser, run: Start, tmp_path: Path, target: float | None, record_property: Callable[[str, object], None]
) -> None:
    """First paint within 2 s; what is asked for is there within 100 ms, the best of five, and the page never hangs.

    With a target the study stores its certificates. Without one it does so from 100 transitions on, and the page says
    that nothing is known yet.
    """
    number = 100_000
    names = [f"chain-{k:06d}" for k in range(number)]
    with Study.create(tmp_path / "study.db", dict.fromkeys(names, 5), budget=10**7, target_loss=target) as study:
        if target is None:
            study.tell_many([(name, (k * t) % 5) for t in range(3) for k, name in enumerate(names)])
        else:
            study.tell_many([(names[k], (k * t) % 5) for k in range(0, number, 1000) for t in range(k // 5000 + 2)])
    server = run(tmp_path / "study.db")
    browser.show(server)
    paint = browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
    # The table is there before the last events are, and the mark comes after both.
    shown = browser.until(lambda: browser.run("return performance.getEntriesByName('chainscout-shown')[0].startTime"))
    if target is None:
        assert "nothing is certified yet" in browser.text("#notes")
        names_of, values = ([e.text for e in browser.all(f"#figures {tag}")] for tag in ("dt", "dd"))
        assert dict(zip(names_of, values, strict=True))["certificate (largest)"] == "—"
    time.sleep(2)
    actions = {
        "sort by observations": "document.getElementById('by-observations').click()",
        "sort by certificate": "document.getElementById('by-certificate').click()",
        "next page": "document.getElementById('next').click()",
        "search": "const box = document.getElementById('search'); box.value = '99' + box.value.length % 2;"
        "box.dispatchEvent(new Event('input'))",
    }
    script = """
const done = arguments[0];
const began = performance.now();
const table = document.getElementById('chains');
new MutationObserver((changes, watch) => {
  if (table.hasAttribute('aria-busy')) return;
  watch.disconnect();
  requestAnimationFrame(() => done(performance.now() - began));
}).observe(table, { attributes: true });
"""
    took = {}
    for name, action in actions.items():
        times = []
        for _ in range(5):
            times.append(browser.driver.execute_async_script(script + action))
            time.sleep(0.3)
        took[name] = min(times) - (120 if name == "search" else 0)  # it waits so long for more letters
    kind = "" if target else " (without a target)"
    for name, value in {"first paint": paint, "complete": shown, **took}.items():
        record_property(f"{name}{kind}", f"{value:.0f} ms")
    print({"first paint": paint, "complete": shown, **took})
    assert paint < 2000
    assert max(took.values()) < 100
