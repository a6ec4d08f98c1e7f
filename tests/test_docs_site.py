"""The documentation as built: groups, links, one page per name and command, words to search for."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any
from urllib.parse import unquote, urlsplit

import click
import pytest

import evergrow
from evergrow.cli import main
from tests.test_public_names import ROOMS

ROOT = Path(__file__).resolve().parents[1]
GROUPS = ["tutorials", "how_to", "gallery/index", "reference", "explanation"]
# What people search for, and the page that tells them.
SEARCHES = {
    "cache": "images",
    "checkpoint": "cluster",
    "heic": "images",
    "latency": "benchmarks",
    "lock": "workspace",
    "retry": "service",
    "symlink": "images",
    "throughput": "benchmarks",
}
# Questions of newcomers: the pages that they click through, the words that they search for, and the
# page that is among the first three found.
NEWCOMERS = {
    "How do I install it?": ("install", "install extras", "install"),
    "How many photographs do I need?": ("faq", "how many photographs per class", "faq"),
    "Which learner should I use?": ("choosing", "which learner", "faq"),
    "Are symlinks followed?": ("faq", "symlinked folders", "faq"),
    "Does it read HEIC?": ("faq", "heic", "faq"),
    "I have folders train, val and test": ("faq", "train val test folders", "faq"),
    "How do I add a class?": ("tutorial_photographs", "add a class", "faq"),
    'How do I get the answer "unknown"?': ("how_to unknown", "unknown", "unknown"),
    "Does it forget old classes?": ("faq", "catastrophic forgetting", "faq"),
    "How do I remove a class?": ("faq", "forget class", "faq"),
    "How do I search for parameters?": (
        "how_to getting_started",
        "grid search",
        "getting_started",
    ),
    "My classes are imbalanced": ("faq", "imbalanced classes", "faq"),
    "Do I need a GPU?": ("faq", "gpu", "faq"),
    "Can I use a network of timm?": ("how_to embeddings", "hugging face", "faq"),
    "Does it work in a pipeline?": ("how_to getting_started", "pipeline cross-validation", "faq"),
    "My features do not fit into memory": ("how_to shards", "shards", "shards"),
    "Is it safe to load a model?": ("faq", "pickle", "faq"),
    "How do I teach from a phone?": ("how_to service", "phone https", "faq"),
    "What is the latency?": ("faq", "latency", "faq"),
    "How do I deploy without Python?": ("how_to export", "onnx", "export"),
    "The workspace is in use": ("faq", "workspace locked", "faq"),
    "How do I cite it?": ("faq", "cite", "faq"),
    "Where is equation 3 in the code?": ("explanation papers", "equation 3", "papers"),
    "Where is the cache?": ("faq", "feature cache", "faq"),
    "Can training resume?": ("faq", "resume", "faq"),
}
# Words that many pages have.
COMMON_WORDS = ("how many photographs", "classes accuracy", "train forest")
# Prints the pages that Sphinx's own search finds, the best first.
SEARCH = """
const [folder, query] = process.argv.slice(1);
const read = (name) => require("fs").readFileSync(`${folder}/${name}`, "utf8");
globalThis.window = globalThis;
globalThis.document = { getElementById: () => null, documentElement: { dataset: {} } };
globalThis._ready = () => {}; globalThis._ = (text) => text;
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
const scripts = ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"].map(read);
const ask = "return Search._performSearch(...Search._parseQuery(query)).reverse();";
const found = new Function("query", [...scripts, ask].join(String.fromCharCode(10)))(query);
console.log(JSON.stringify(found.map((result) => result[0])));
"""
# Prints what the button of the site copies of each of the texts.
COPY = """
const { script, texts } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const call = script.match(/return (formatCopyText\\(text, .*\\))/)[1];
const places = ["function escapeRegExp", "var copyTargetText"].map((part) => script.indexOf(part));
const functions = script.slice(...places).replaceAll("export ", "");
const copied = new Function("text", `${functions}; return ${call}`);
console.log(JSON.stringify(texts.map((text) => copied(text))));
"""
# Blocks of code on a built page, and a shell's or Python's first and next lines in them.
CODE = re.compile(
    r'<div class="highlight-(\w+) notranslate"><div class="highlight"><pre>(.*?)</pre>', re.S
)
PROMPTS = {"console": ("$ ",), "python": (">>> ", "... ")}
# Where the service and its routes are described, and the programs of the integrations.
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design")
NEEDED += ("fastapi", "mlflow", "river")
MAX_PROCESSOR_SECONDS = 180.0
# A link that Sphinx made of a word in a type; a link that was written is code.
WORD_LINK = re.compile(r'<a class="reference internal"[^>]*title="(evergrow\.[\w.]+)">(?!<code)')
# A name that was written as a reference and is not a link.
UNRESOLVED = re.compile(r'(?<!">)<code class="xref py py-\w+[^>]*>(.*?)</code>')
ELSEWHERE = {"sklearn.pipeline.Pipeline", "Path"}


class Site:
    """A built site: its pages, and what Sphinx knew of them."""

    def __init__(self, folder: Path, doctrees: Path) -> None:
        self.folder = folder
        with (doctrees / "environment.pickle").open("rb") as file:
            self.environment: Any = pickle.load(file)
        names = self.environment.found_docs | {"genindex", "search"}
        self.pages = {path: Page(path) for path in map(self.path, sorted(names))}

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.html"

    def text(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8")


class Page(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(str(values["id"]))
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(str(values[name]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    for module in NEEDED:
        pytest.importorskip(module, reason=f"the documentation needs {module}")
    folder, doctrees = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("doctrees")
    before = os.times().children_user
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(doctrees)]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert built.returncode == 0, built.stderr
    assert os.times().children_user - before < MAX_PROCESSOR_SECONDS
    return Site(folder, doctrees)


def broken_links(site: Site) -> Iterator[str]:
    for path, page in site.pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = site.pages.get(target)
            if not target.exists() or (
                parts.fragment and found and unquote(parts.fragment) not in found.ids
            ):
                yield f"{path.relative_to(site.folder)}: {link}"


def test_every_link_leads_to_a_page_and_a_place_on_it(site: Site) -> None:
    assert len(site.pages) > 250
    assert [*broken_links(site)] == []


def test_every_page_is_in_exactly_one_group(site: Site) -> None:
    includes = site.environment.toctree_includes
    assert includes["index"] == GROUPS
    listed = [page for pages in includes.values() for page in pages]
    assert sorted(listed) == sorted({*listed})
    orphans = {page for page, facts in site.environment.metadata.items() if "orphan" in facts}
    # Pages of the gallery are generated as orphans; its index is listed all the same.
    assert {*listed, "index"} - orphans == site.environment.found_docs - orphans


def test_every_group_is_in_the_header_of_every_page(site: Site) -> None:
    for name in ("index", "growing", "api/evergrow.NCMForestClassifier"):
        header = site.text(name).partition("</header>")[0]
        for group in GROUPS:
            assert re.search(rf'href="[^"]*\b{group}\.html"', header)


def public_objects() -> dict[str, Any]:
    """The classes and functions of the package and its rooms, by any of their public names."""
    found = {}
    for module in (evergrow, *(import_module(f"evergrow.{room}") for room in ROOMS)):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type | FunctionType):
                found[f"{module.__name__}.{name}"] = value
    return found


def test_every_public_class_and_function_has_a_page(site: Site) -> None:
    objects = public_objects()
    assert len(objects) > 150
    pages = {page.removeprefix("api/") for page in site.environment.found_docs}
    pages |= {page.removesuffix("-function") for page in pages}
    # An object of a room may have its page under the shorter name of the package.
    described = [value for name, value in objects.items() if name in pages]
    assert [name for name, value in objects.items() if value not in described] == []
    assert [name for name in evergrow.__all__ if f"evergrow.{name}" in {*objects} - pages] == []


def test_pages_differ_by_more_than_case(site: Site) -> None:
    lower = [page.lower() for page in site.environment.found_docs]
    assert sorted(lower) == sorted({*lower})


def test_methods_are_on_the_page_of_their_class(site: Site) -> None:
    page = site.text("api/evergrow.NCMForestClassifier")
    for name in ("fit", "partial_fit", "forget", "explain", "save", "classes_"):
        assert page.count(f'id="evergrow.NCMForestClassifier.{name}"') == 1
    # scikit-learn documents its own.
    assert "NCMForestClassifier.set_params" not in page


@pytest.mark.parametrize("name", main.commands)
def test_every_command_has_a_page_with_all_its_options(site: Site, name: str) -> None:
    page = site.text(f"commands/{name}")
    command = main.commands[name]
    commands = [command, *getattr(command, "commands", {}).values()]
    for option in (param for each in commands for param in each.params):
        if isinstance(option, click.Option) and not option.hidden:
            assert f"{option.opts[-1]}</span>" in page


def test_every_route_is_on_the_page_of_routes(site: Site) -> None:
    from evergrow.service import Service, create_app

    page = site.text("http")
    for route in create_app(Service("unopened")).routes:
        if getattr(route, "include_in_schema", False):
            for method in route.methods:
                assert f"{method} {route.path}<" in page


def wrong_type_links(page: str, kinds: dict[str, str]) -> list[str]:
    """Names of attributes, methods and functions to which a word in a type links."""
    return [
        name
        for name in WORD_LINK.findall(page)
        if kinds.get(name) not in ("class", "exception", "module")
    ]


def test_words_in_types_do_not_link_to_unrelated_names(site: Site) -> None:
    objects = site.environment.domaindata["py"]["objects"]
    kinds = {name: entry.objtype for name, entry in objects.items()}
    wrong = {
        path.name: found
        for path in (site.folder / "api").glob("*.html")
        if (found := wrong_type_links(path.read_text(encoding="utf-8"), kinds))
    }
    assert wrong == {}
    # Right ones are there.
    assert 'title="evergrow.UpdateReport"' in site.text("api/evergrow.NCMForestClassifier")


def test_names_in_docstrings_are_links(site: Site) -> None:
    pages = (path.read_text(encoding="utf-8") for path in (site.folder / "api").glob("*.html"))
    names = {re.sub(r"<.*?>", "", name) for page in pages for name in UNRESOLVED.findall(page)}
    assert names == ELSEWHERE


def test_a_wrong_type_link_is_noticed() -> None:
    link = '<a class="reference internal" href="#a" title="evergrow.UpdateReport.n_samples">{}</a>'
    kinds = {"evergrow.UpdateReport.n_samples": "attribute"}
    assert wrong_type_links(link.format("<em>n_samples</em>"), kinds)
    assert not wrong_type_links(link.format('<code class="xref">n_samples</code>'), kinds)


def test_pages_name_the_guides_that_use_them(site: Site) -> None:
    for name in ("api/evergrow.NCMForestClassifier", "commands/serve"):
        assert '<p class="guides">' in site.text(name)


@pytest.mark.parametrize(("word", "page"), SEARCHES.items())
def test_the_words_of_the_field_are_found(site: Site, word: str, page: str) -> None:
    import snowballstemmer

    text = (site.folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    stem = snowballstemmer.stemmer("english").stemWord(word)
    names: set[str] = set()
    for where in ("terms", "titleterms"):
        found = index[where].get(stem, [])
        names |= {index["docnames"][i] for i in ([found] if isinstance(found, int) else found)}
    assert page in names


def test_equations_need_neither_a_script_nor_a_network(site: Site) -> None:
    page = site.text("method_ncm_forests")
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') > 5
    assert not re.search(r'<script[^>]* src="(https?:)?//', page)


def test_pictures_of_the_gallery_are_on_the_pages_of_methods(site: Site) -> None:
    assert 'src="_images/sphx_glr_plot_one_node_001.png"' in site.text("method_ncm_forests")


needs_node = pytest.mark.skipif(
    not shutil.which("node"), reason="scripts of the site are run by Node.js"
)


def code_of(page: Path) -> Iterator[tuple[str, str]]:
    """The language and text of each block of code."""
    for language, code in CODE.findall(page.read_text(encoding="utf-8")):
        yield language, unescape(re.sub(r"<.*?>", "", code))


def commands_of(text: str, *prompts: str) -> list[str]:
    """The lines that a person types; all of them if there is no prompt."""
    lines = [line for line in text.splitlines() if line]
    if not any(line.startswith(prompts) for line in lines):
        return lines
    found: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on or line.startswith(prompts):
            prompt = next(filter(line.startswith, prompts), "")
            found.append(line.removeprefix(prompt))
            goes_on = line.endswith("\\")
    return found


@needs_node
@pytest.mark.parametrize("language", PROMPTS)
def test_the_copy_button_copies_whole_commands_without_their_output(
    site: Site, language: str
) -> None:
    texts = [text for page in site.pages for kind, text in code_of(page) if kind == language]
    script = (site.folder / "_static/copybutton.js").read_text(encoding="utf-8")
    given = json.dumps({"script": script, "texts": texts})
    command = ["node", "-e", COPY]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    expected = [commands_of(text, *PROMPTS[language]) for text in texts]
    copied = [[line for line in text.splitlines() if line] for text in json.loads(done.stdout)]
    assert len(texts) > 50
    assert copied == expected


def test_a_command_of_two_lines_is_one_command(site: Site) -> None:
    texts = [text for _, text in code_of(site.path("tutorial_camera"))]
    (asks,) = (text for text in texts if "v1/predictions" in text)
    assert commands_of(asks, "$ ")[-2:] == [
        'curl -H "Authorization: Bearer $(tail -1 token)" \\',
        "    -F image=@what.jpg http://127.0.0.1:8080/v1/predictions",
    ]


def search(site: Site, words: str) -> list[str]:
    """Return the pages that the search of the site finds, the best first."""
    command = ["node", "-e", SEARCH, str(site.folder), words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


@needs_node
@pytest.mark.parametrize("words", COMMON_WORDS)
def test_guides_are_found_before_results(site: Site, words: str) -> None:
    found = search(site, words)
    results = [page.startswith("results/") for page in found]
    assert any(results)
    guides = ["/" not in page and page != "changelog" for page in found]
    assert guides[0]
    assert max(place for place, is_guide in enumerate(guides) if is_guide) < results.index(True)


@needs_node
@pytest.mark.parametrize("question", NEWCOMERS)
def test_questions_of_newcomers_are_answered_by_one_search(site: Site, question: str) -> None:
    _, words, page = NEWCOMERS[question]
    assert page in search(site, words)[:3]


@pytest.mark.parametrize("question", NEWCOMERS)
def test_questions_of_newcomers_are_answered_by_two_clicks(site: Site, question: str) -> None:
    here = "index"
    clicks = NEWCOMERS[question][0].split()
    assert len(clicks) <= 2
    for page in clicks:
        links = {link.partition("#")[0] for link in site.pages[site.path(here)].links}
        assert f"{page}.html" in links
        here = page


def test_questions_are_answered(site: Site) -> None:
    assert site.text("faq").count("<h3>") >= 20


def test_the_changelog_is_part_of_the_site(site: Site) -> None:
    assert "Unreleased" in site.text("changelog")
