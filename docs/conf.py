"""Sphinx configuration."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

# Examples are small: idle threads of linear algebra would only be in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).parent
# Our extensions, the module with the style of the gallery's figures, and the one that draws its
# pictures.
sys.path[:0] = [str(HERE / "_extensions"), str(HERE), str(HERE.parent / "examples")]

project = "Evergrow"
author = "The Evergrow developers"
copyright = "2026, The Evergrow developers"  # noqa: A001
version = release = installed_version("evergrow")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in _extensions.
    "generated_pages",
    "guides",
    "links",
    "mathml",
    "members",
]
exclude_patterns = ["_build", "_extensions", "_templates", "versions.py"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# Blank lines are output. A command that goes on in the next line, which has no prompt, is copied
# whole.
copybutton_copy_empty_lines = False
copybutton_line_continuation_character = "\\"

autodoc_typehints = "none"
# The name of a default value, where it has one, instead of a long representation.
autodoc_preserve_defaults = True
# Where upper and lower case are the same, plan and Plan would be one file.
autosummary_filename_map = {"evergrow.plan": "evergrow.plan-function"}
napoleon_google_docstring = False

_SECTIONS = ("forests", "linear", "labels", "images", "scale")
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/gallery/{section}" for section in _SECTIONS],
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    # Names of the package in an example's code are links to the API.
    "doc_module": ("evergrow",),
    "reference_url": {"evergrow": None},
    "backreferences_dir": "gallery/backreferences",
    "reset_modules": ("gallery_style.reset",),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 360),
    "capture_repr": (),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "download_all_examples": False,
}

# Entries of the page's table of contents are "fit()", not "NCMForestClassifier.fit()".
toc_object_entries_show_parents = "hide"

# That of the page.
ICON = "../src/evergrow/page/icon.svg"

html_theme = "pydata_sphinx_theme"
html_title = f"Evergrow {release}"
html_favicon = ICON
html_static_path = ["_static"]
html_css_files = ["gallery.css", "site.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
# The landing page has no pages next to it.
html_sidebars = {"index": []}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "logo": {"text": "Evergrow", "image_light": ICON, "image_dark": ICON},
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_prev_next": True,
    "show_toc_level": 2,
    # Next to the folders of all versions; docs/versions.py writes it after the build.
    "switcher": {"json_url": "../switcher.json", "version_match": release},
    "check_switcher": False,
    "show_version_warning_banner": True,
}


def allow_missing_pictures(app: Sphinx, config: Config) -> None:  # noqa: ARG001
    """Without its pictures (``-D plot_gallery=0``), the gallery leaves gaps on other pages."""
    if str(config.plot_gallery) in ("0", "False"):
        config.suppress_warnings = [*config.suppress_warnings, "image.not_readable"]


def setup(app: Sphinx) -> None:
    """Connect what depends on the options of the build."""
    app.connect("config-inited", allow_missing_pictures)
