"""Reports in a headless Chromium: they draw, open and fold without an error, and nothing in a model becomes code."""

import pathlib
import sys

import browser
import onnx
import pytest
from onnx import helper
from treadle.report import report

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "bench"))

import report_models  # noqa: E402

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed")

# Sections that a report has beside the model's boxes.
SECTIONS = {
    "nested": {"problems", "found", "loops", "flame", "memory", "heat", "roof"},
    "loop in a loop": {"loops", "flame", "memory", "heat", "roof"},
    "voice detector": {"loops", "flame", "memory", "pushes"},
    "transducer": {"loops", "flame", "memory", "heat", "roof"},
    "lists": {"loops", "flame", "memory", "heat"},
    "texts": {"loops", "flame", "memory"},
    "functions": {"loops", "flame", "memory"},
    "long recurrence": {"loops", "flame", "memory", "heat", "roof"},
    "stream": {"loops", "flame", "memory", "heat", "roof", "pushes"},
    "20,000 nodes": {"loops", "flame", "memory"},
    "hostile": {"found", "loops", "flame"},
    "broken": {"problems"},
    "unknown operator": {"problems", "loops"},
    "without inputs": {"problems", "loops", "roof"},
}
READY = "document.documentElement?.dataset.ready === 'yes'"
OPEN = "for (const box of document.querySelectorAll('details:not([open])')) box.open = true; 0"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The address of a report by the name of its model; each is made once."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def address(name):
        if name not in made:
            made[name] = folder / f"{len(made)}.html"
            report(**report_models.MODELS[name]()).save(made[name])
        return made[name].as_uri()

    return address


@pytest.fixture
def opened(chromium, written):
    """Opens a model's report; pages are closed, and have no complaints, at the end."""
    pages = []

    def page_of(name, width=1100, scheme="light"):
        page = chromium.page(written(name))
        pages.append(page)
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.call("Page.reload")  # with that width
        page.wait(READY, seconds=20)
        return page

    yield page_of
    for page in pages:
        assert page.complaints == []
        page.close()


def fits(page):
    return page.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", report_models.MODELS)
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (768, "light"), (420, "dark")])
def test_draws_and_opens(opened, name, width, scheme):
    page = opened(name, width, scheme)
    shown = page.run("[...document.querySelectorAll('section')].filter((s) => s.offsetHeight).map((s) => s.id)")
    missing = SECTIONS[name] - set(shown)
    assert not missing and set(shown) - SECTIONS[name] <= {"problems", "memory", "roof"}
    for _ in range(6):  # boxes in boxes
        page.run(OPEN)
        page.run("new Promise((done) => setTimeout(done, 20))")
    page.wait("!document.querySelector('#boxes details') || !!document.querySelector('#boxes :is(td, dd)')")
    page.run("for (const r of document.querySelectorAll('.flame rect')) r.dispatchEvent(new MouseEvent('click')); 0")
    page.run("for (const b of document.querySelectorAll('section button:not([hidden])')) b.click(); 0")
    page.run("for (const box of document.querySelectorAll('details')) box.open = false; 0")
    assert fits(page)
    page.call("Emulation.setDeviceMetricsOverride", width=width + 90, height=700, deviceScaleFactor=1, mobile=False)
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert fits(page)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert fits(page)
    assert page.run("document.title") != "broken"
    assert page.run("document.scripts.length") == (3 if page.run("typeof d3 === 'object'") else 2)
    assert page.run("document.images.length") == 0
    assert page.run("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("name", ["nested", "stream", "functions"])
def test_fits_on_paper(opened, name):
    page = opened(name, scheme="dark")
    page.run(OPEN)
    pdf = page.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
    assert len(pdf) > 10_000
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('button')).display") == "none"


def test_texts_can_be_read(opened):
    """Contrast of texts with what is behind them, as WCAG measures it, at least 4.5."""
    for scheme in ("light", "dark"):
        page = opened("nested", scheme=scheme)
        page.run(OPEN)
        contrasts = page.run("""(() => {
          const parts = (c) => c.match(/[\\d.]+/g).map(Number);
          const light = (c) => { const [r, g, b] = parts(c).map((x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] !== 0) return c; } return "rgb(255,255,255)"; };
          return [...document.querySelectorAll("h1, h2, p, li, td, th, dt, dd, summary span, pre, .legend")].map((e) => {
            const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
            return [(a + 0.05) / (b + 0.05), e.textContent.slice(0, 40)];
          });
        })()""")
        assert len(contrasts) > 50
        assert min(contrasts)[0] >= 4.5, min(contrasts)


def test_the_first_nan_is_shown(opened):
    page = opened("nested")
    assert "Log /Loop_0:body/Log_2, iteration 4" in page.run("document.getElementById('answers').innerText")
    assert "made at" in page.run("document.querySelector('#found pre').innerText")
    assert page.run("document.querySelectorAll('#heat option').length") == 4


def test_the_keyboard_opens_boxes(opened):
    page = opened("without inputs")
    before = page.run("document.querySelector('#boxes details').open")
    page.press("Tab", 9)
    assert page.run("document.activeElement.tagName") == "SUMMARY"
    page.press("Enter", 13, "\r")
    assert page.run("document.querySelector('#boxes details').open") != before


def test_the_keyboard_reads_drawings(opened):
    page = opened("nested")
    page.run("document.querySelector('.flame').focus()")
    page.press("ArrowDown", 40)
    assert "/Loop_0, " in page.run("document.querySelector('#flame .reading').innerText")
    page.press("Enter", 13, "\r")  # shows the loop alone
    assert page.run("!document.querySelector('#flame button').hidden")
    page.run("document.querySelector('#heat canvas').focus()")
    for _ in range(3):
        page.press("ArrowRight", 39)
    text = page.run("document.querySelector('#heat .reading').innerText")
    assert text.startswith("i: 0 to 5; iteration 2: norm 2")


def test_functions_open_and_have_the_attributes_of_their_calls(opened):
    page = opened("functions")
    for _ in range(4):
        page.run(OPEN)
        page.run("new Promise((done) => setTimeout(done, 20))")
    text = page.run("document.getElementById('boxes').innerText")
    assert "function of house" in text
    assert "alpha = 0.25" in text  # of the call
    assert "alpha = 0.125" in text  # the default


def test_more_iterations_than_columns(opened):
    page = opened("long recurrence", 420)
    assert page.run("data.trace.map['/Scan_2'].columns") <= 1500
    assert page.run("data.trace.map['/Scan_2'].at.at(-1)[0]") == 3999 - (3999 % 3)
    assert page.run("document.querySelector('#heat canvas').clientWidth <= document.querySelector('.heat').clientWidth")


def test_20_000_nodes_open_in_time(opened):
    page = opened("20,000 nodes")
    assert page.run("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart") < 3000


def test_a_model_of_the_wire():
    """The tree of nodes of a model that onnx wrote, with attributes of every kind."""
    node = helper.make_node(
        "Op", ["x"], ["y"], a=1, b=2.5, c="text", d=[1, 2], e=[0.5], f=["u"], g=onnx.TensorProto(dims=[3])
    )
    graph = helper.make_graph([node, node], "g", [], [])
    graph.node[0].name = graph.node[1].name = "twice"
    from treadle.report._tree import tree

    found, again = tree(helper.make_model(graph).SerializeToString())
    assert dict(found["attributes"]) == {
        "a": "1", "b": "2.5", "c": "text", "d": "[1, 2]", "e": "[0.5]", "f": "['u']", "g": "tensor[3]",
    }  # fmt: skip
    assert (found["name"], again["name"]) == ("/twice", "/twice#2")
