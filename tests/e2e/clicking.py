"""Driving pages in Chromium: find by what a person reads, act, and wait for what follows instead of for time."""

from __future__ import annotations

from collections.abc import Iterable

from axe_core_python.base import AXE_SCRIPT
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 20
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def wait(browser: Chrome) -> WebDriverWait[Chrome]:
    """Until a condition holds; a test fails when it never does."""
    # Between two pages Chromium answers questions with errors of many kinds.
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.05, ignored_exceptions=(WebDriverException,))


def button(browser: Chrome, name: str) -> WebElement:
    """The button that carries this text or accessible name."""
    [button] = [one for one in browser.find_elements(By.TAG_NAME, "button") if one.accessible_name == name]
    return button


def press(browser: Chrome, element: WebElement) -> None:
    """Click what leads to another page, and wait until this one is gone."""
    page = browser.find_element(By.TAG_NAME, "html")
    element.click()
    wait(browser).until(staleness_of(page))


def as_wide_as(browser: Chrome, width: int, height: int = 844) -> None:
    screen = {**PHONE, "width": width, "height": height, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def heading(browser: Chrome) -> str:
    """What the page is about."""
    return browser.find_element(By.TAG_NAME, "h1").text


def complaints(browser: Chrome) -> list[str]:
    """What Chromium has written to its console since it was asked last."""
    return [entry["message"] for entry in browser.get_log("browser")]


# What a person uses, by its role in Chromium's accessibility tree.
INPUTS = {"Date", "DateTime", "checkbox", "combobox", "radio", "searchbox", "slider", "spinbutton", "textbox"}
CONTROLS = INPUTS | {"DisclosureTriangle", "button", "link"}


def nameless(browser: Chrome) -> list[str]:
    """The controls of the page that have no accessible name."""
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    shown = [node for node in tree if not node["ignored"] and node["role"]["value"] in CONTROLS]
    without = [node["backendDOMNodeId"] for node in shown if not node.get("name", {}).get("value")]
    return [browser.execute_cdp_cmd("DOM.getOuterHTML", {"backendNodeId": node})["outerHTML"] for node in without]


# Only violations are wanted: collecting what passes takes axe half as long again. It need not load style sheets again.
# Contrast takes axe longer than all other rules together, and depends on the style alone, which is here what a reader
# sees of a text and behind it: of the texts whose style is not among `known`, one of each style is looked at.
# axe gives up a rule silently where it meets a colour that it cannot parse, as what Chromium makes of color-mix().
AXE = """
const [part, known, done] = arguments;
const mixed = /color\\(srgb ([\\d.]+) ([\\d.]+) ([\\d.]+)(?: \\/ ([\\d.]+))?\\)/g;
const parts = (_, red, green, blue, opacity) => `rgba(${[red, green, blue].map(one => 255 * one)}, ${opacity ?? 1})`;
const value = CSSStyleDeclaration.prototype.getPropertyValue;
const options = {resultTypes: ['violations'], preload: false};
const around = one => one ? [one, ...around(one.parentElement)] : [];
const speaks = one => one.matches('input, select, textarea')
  || [...one.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
const style = one => {
  const {color, fontSize, fontWeight} = getComputedStyle(one);
  const behind = around(one).map(box => getComputedStyle(box))
    .map(box => `${box.backgroundColor} ${box.backgroundImage} ${box.opacity}`);
  return [color, fontSize, fontWeight, ...new Set(behind)].join(', ');
};
const shown = [...document.querySelectorAll(`${part}, ${part} *`)].filter(one => one.checkVisibility() && speaks(one));
const fresh = new Map(shown.map(one => [style(one), one]));
known.forEach(one => fresh.delete(one));
const run = async (where, how) => {
  const {violations, incomplete} = await axe.run(where, {...options, ...how});
  return [
    ...violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 120)}`),
    ...incomplete.filter(({error}) => error).map(({id, message}) => `${id}: ${message}`),
  ];
};
const look = async () => [
  ...await run(part, {rules: {'color-contrast': {enabled: false}}}),
  ...fresh.size ? await run([...fresh.values()], {runOnly: ['color-contrast']}) : [],
];
CSSStyleDeclaration.prototype.getPropertyValue = function (name) {
  return value.call(this, name).replace(mixed, parts);
};
look().then(found => done([found, [...fresh.keys()]]), error => done([[`${error}`], []]))
  .finally(() => { CSSStyleDeclaration.prototype.getPropertyValue = value; });
"""


def findings(browser: Chrome, part: str = "html", styles: set[str] | None = None) -> list[str]:
    """What axe-core finds wrong with the page or a part of it: each rule with the first element that breaks it.

    Its rules are about the document, which is the same on each screen. `styles`: those of texts whose contrast has been
    looked at, to which the new ones of this page are added.
    """
    styles = set() if styles is None else styles
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script(AXE_SCRIPT)
    faults, new = browser.execute_async_script(AXE, part, [*styles])
    styles.update(new)
    return list(faults)


# Text of which a part lies outside of the page, or of a box around it that clips or scrolls.
CUT_OFF = """
const clips = box => ['overflowX', 'overflowY'].some(axis => getComputedStyle(box)[axis] !== 'visible');
const around = one => one ? [one, ...around(one.parentElement)] : [];
const found = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode;
  if (!text.data.trim() || text.parentElement.closest('.hidden, .skip, ' + (arguments[0] || 'x-none'))) continue;
  const range = document.createRange();
  range.selectNodeContents(text);
  const {left, top, right, bottom} = range.getBoundingClientRect();
  const page = document.documentElement;
  const boxes = around(text.parentElement).filter(box => box !== page && box !== document.body && clips(box))
    .map(box => box.getBoundingClientRect());
  boxes.push({left: 0, top: -Infinity, right: page.clientWidth, bottom: Infinity});
  if (boxes.some(box => left < box.left - 1 || right > box.right + 1 || top < box.top - 1 || bottom > box.bottom + 1))
    found.push(text.data.trim());
}
return found;
"""


def cut_off(browser: Chrome, *, but: str | None = None) -> list[str]:
    """The texts that a reader does not see whole without scrolling sideways or inside of a box; `but`: not of these."""
    return list(browser.execute_script(CUT_OFF, but))


def is_too_wide(browser: Chrome) -> bool:
    """Whether a reader has to scroll sideways."""
    wide = "const page = document.documentElement; return page.scrollWidth > page.clientWidth"
    return bool(browser.execute_script(wide))


# Words on buttons that are broken in two, and boxes that scroll but not by keyboard.
AWKWARD = """
const shown = [...document.querySelectorAll('main *')].filter(one => one.checkVisibility());
const range = new Range();
const lines = one => { range.selectNodeContents(one); return range.getClientRects().length; };
const broken = one => one.matches('button') && !/\\s/.test(one.textContent.trim()) && lines(one) > 1;
const scrolls = one => getComputedStyle(one).overflowY === 'auto' && one.scrollHeight > one.clientHeight;
const reached = one => one.matches('[tabindex], textarea') || one.querySelector('a[href], button, input');
return shown.filter(one => broken(one) || scrolls(one) && !reached(one)).map(one => one.outerHTML.slice(0, 200));
"""


def awkward(browser: Chrome) -> list[str]:
    """What can hardly be read, or by a mouse alone."""
    return list(browser.execute_script(AWKWARD))


# The content of another page in place of this one's.
PUT = """
const [address, done] = arguments;
const put = async () => {
  const answer = await fetch(address);
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const sheets = one => [...one.querySelectorAll('link[rel=stylesheet]')].map(link => link.getAttribute('href')).join();
  if (sheets(page) !== sheets(document)) throw new Error('it has style sheets of its own');
  document.body.replaceWith(page.body);
  return answer.status;
};
put().then(done, error => done(`${error}`));
"""


def put(browser: Chrome, url: str) -> None:
    """Show the content of another page of the same kind, which takes a third of opening it; its scripts do not run."""
    assert browser.execute_async_script(PUT, url) == 200, url


def faults(browser: Chrome, urls: Iterable[str], *, opened: bool = False) -> dict[str, dict[str, object]]:
    """What is wrong with pages of one kind, each on a desktop's screen and on a phone's.

    What surrounds their content is the same on all of them, and is looked at on the first. Only that one is opened,
    unless `opened` says that all are.
    """
    wrong: dict[str, dict[str, object]] = {}
    styles: set[str] = set()
    for number, url in enumerate(urls):
        if opened or not number:
            browser.get(url)
        else:
            put(browser, url)
        # Each page begins with the screen that the one before ended with: laying out for another takes long.
        for phone in (False, True) if number % 2 == 0 else (True, False):
            if phone:
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
            else:
                browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            seen = {
                "nameless": nameless(browser) if phone and not number else [],
                "wide": is_too_wide(browser),
                "awkward": awkward(browser),
                "axe": [] if phone else findings(browser, "main" if number else "html", styles),
                "complaints": complaints(browser),
            }
            if any(seen.values()):
                wrong[f"{url} on a phone" if phone else url] = seen
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return wrong
