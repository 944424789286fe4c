"""The report page in a real browser: it sends no request, fits every screen, and has a dark mode."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests.auditing.report.sample_audit import make_audit, make_broken_audit, make_hostile_audit
from tests.evaluation.report.sample_report import make_hostile_sample, make_sample

from sundog.auditing.report.audit_page import render_audit_page
from sundog.evaluation.report.report_page import render_page
from sundog.evaluation.report.side_by_side_page import render_side_by_side

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("there is no browser: apt-get install chromium", allow_module_level=True)
pytest.importorskip("playwright", reason="there is nothing to drive a browser with: pip install playwright")

PAGES = {
    "page": lambda: render_page(make_sample()),
    "compare": lambda: render_side_by_side([make_sample(f"adult-{e}", e, shift=e / 100) for e in (0.1, 1.0, 3.0, 8.0)]),
    "hostile": lambda: render_page(make_hostile_sample()),
    "audit": lambda: render_audit_page(make_audit()),
    "broken audit": lambda: render_audit_page(make_broken_audit()),
    "hostile audit": lambda: render_audit_page(make_hostile_audit()),
}
ADDRESS = "http://127.0.0.1:9/x.png"
Theme = Literal["light", "dark"]

# The least contrast of all text with what is behind it, and where that is. Text on images is apart: it has its own ink.
CONTRAST = """() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0.05);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = channels(getComputedStyle(at).backgroundColor);
      if (alpha > 0) return [r, g, b];
    }
    return null;
  };
  let least = [100, "no text"];
  for (const element of document.body.querySelectorAll("*")) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
    const style = getComputedStyle(element);
    const ink = channels(element instanceof SVGElement ? style.fill : style.color);
    if (String(ink) === "1,1,1") continue;
    const [dim, bright] = [light(ink), light(behind(element))].sort((a, b) => a - b);
    if (bright / dim < least[0]) least = [bright / dim, element.outerHTML.slice(0, 100)];
  }
  return least;
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in PAGES}
    for name, path in found.items():
        path.write_text(PAGES[name](), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Visit:
    """An open page with its messages and requests."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        self.refused: dict[str, str | None] = {}
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", self.dismiss)
        page.on("requestfailed", lambda request: self.refused.update({request.url: request.failure}))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(path.as_uri())

    def dismiss(self, dialog: Dialog) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)


@pytest.fixture(params=[(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def screen(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    width, theme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
    yield context.new_page()
    context.close()


@pytest.fixture
def plain(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1024, "height": 844})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_it_is_shown_whole_and_readable(name: str, files: dict[str, Path], screen: Page) -> None:
    visit = Visit(screen, files[name])
    assert visit.said == []
    assert all(url.startswith(("file:", "data:")) for url in visit.asked)
    width = visit.ask("innerWidth")
    assert visit.ask("document.documentElement.scrollWidth") <= width
    drawn = visit.ask(
        "[...document.querySelectorAll('figure svg, svg image, img')].map(e => {const b = "
        "e.getBoundingClientRect(); return [b.width, b.height]})"
    )
    assert len(drawn) >= 1
    assert all(across > 4 and down > 4 for across, down in drawn)
    contrast, where = visit.ask(CONTRAST)
    assert 4.5 <= contrast < 100, where


def test_an_attack_explains_itself_on_demand(files: dict[str, Path], plain: Page) -> None:
    Visit(plain, files["audit"])
    description = plain.get_by_text("value by value")
    assert not description.is_visible()
    plain.get_by_text("exact-match", exact=True).first.click()
    assert description.is_visible()


@pytest.mark.parametrize("name", ["audit", "broken audit"])
def test_the_conclusion_of_an_audit_is_seen_first(name: str, files: dict[str, Path], screen: Page) -> None:
    Visit(screen, files[name])
    title, conclusion = (
        screen.get_by_role("heading", level=1).bounding_box(),
        screen.locator(".headline").bounding_box(),
    )
    others = [each.bounding_box() for each in (screen.locator(".promise"), screen.locator(".banner"))]
    assert title is not None
    assert conclusion is not None
    assert title["y"] + title["height"] <= conclusion["y"]
    assert conclusion["y"] + conclusion["height"] < min(each["y"] for each in others if each is not None)
    assert conclusion["y"] + conclusion["height"] < 844  # without scrolling, on a phone too


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_follows_the_theme(theme: Theme, files: dict[str, Path], plain: Page) -> None:
    plain.emulate_media(color_scheme=theme)
    visit = Visit(plain, files["page"])
    red = visit.ask("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (red > 200) == (theme == "light")


def test_every_picture_of_the_report_is_there(files: dict[str, Path], plain: Page) -> None:
    visit = Visit(plain, files["page"])
    expected = sum(len(section.pictures) for section in make_sample().sections)
    assert plain.get_by_role("img").count() == expected
    loaded = visit.ask(
        "Promise.all([...document.querySelectorAll('svg image')].map(image => new Promise(done => {"
        "const copy = new Image(); copy.onload = () => done(copy.naturalWidth); copy.onerror = () => done(0);"
        "copy.src = image.href.baseVal})))"
    )
    assert len(loaded) > 12  # three heat-maps, twelve small images, many points
    assert min(loaded) > 0


def test_a_measure_explains_itself_on_demand(files: dict[str, Path], plain: Page) -> None:
    Visit(plain, files["page"])
    meaning = plain.get_by_text("tables of two columns")
    assert not meaning.is_visible()
    plain.get_by_text("Distance of pairs of columns").click()
    assert meaning.is_visible()


@pytest.mark.parametrize("name", ["hostile", "hostile audit"])
def test_markup_in_data_does_nothing(name: str, files: dict[str, Path], plain: Page) -> None:
    visit = Visit(plain, files[name])
    assert visit.said == []
    assert visit.ask("document.scripts.length") == 0
    assert (
        visit.ask(
            "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
            ".filter(name => name.startsWith('on'))"
        )
        == []
    )
    assert plain.get_by_role("heading", level=1).inner_text() == "<script>alert(1)</script>"


def test_the_policy_stops_what_should_not_be_there(files: dict[str, Path], plain: Page, tmp_path: Path) -> None:
    intruded = tmp_path / "intruded.html"
    intruder = f"<script>document.title = 'taken'</script><img src='{ADDRESS}' onerror='alert(1)'>"
    intruded.write_text(files["hostile"].read_text("utf-8").replace("</body>", f"{intruder}</body>"), encoding="utf-8")
    visit = Visit(plain, intruded)
    assert plain.title() != "taken"
    assert any("Content Security Policy" in said for said in visit.said)
    assert {url: why for url, why in visit.refused.items() if url.startswith("http")} == {ADDRESS: "csp"}


@pytest.mark.parametrize("name", PAGES)
def test_it_prints(name: str, files: dict[str, Path], plain: Page) -> None:
    visit = Visit(plain, files[name])
    plain.emulate_media(media="print")
    closed = visit.ask(
        "[...document.querySelectorAll('details:not([open]) > :not(summary)')]"
        ".map(e => e.checkVisibility() && e.getBoundingClientRect().height > 5)"
    )
    assert len(closed) > 0
    assert all(closed)  # on paper nothing can be opened
    printed = plain.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") >= 2
    plain.set_viewport_size({"width": 673, "height": 987})  # what margins leave of A4
    assert visit.ask("document.documentElement.scrollWidth") <= 673


@pytest.mark.parametrize(("width", "whole"), [(1200, {"Findings", "All attacks and controls"}), (390, {"Findings"})])
def test_tables_of_an_audit_are_not_cut_off(
    width: int, whole: set[str], browser: Browser, files: dict[str, Path]
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(files["broken audit"].as_uri())
    found = page.evaluate(
        "[...document.querySelectorAll('.scroller')]"
        ".map(each => [each.getAttribute('aria-label'), each.scrollWidth - each.clientWidth])"
    )
    page.close()
    assert whole <= {name for name, beyond in found if beyond <= 0}
