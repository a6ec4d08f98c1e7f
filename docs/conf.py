"""Sphinx configuration."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

# Examples are small: idle threads of linear algebra would only be in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The module with the style of the gallery's figures, and the one that draws its pictures.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "examples")]

project = "Evergrow"
author = "The Evergrow developers"
copyright = "2026, The Evergrow developers"  # noqa: A001
version = release = installed_version("evergrow")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "versions.py"]
autodoc_typehints = "none"
autosummary_generate = True
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

html_theme = "pydata_sphinx_theme"
html_title = f"Evergrow {release}"
html_sidebars = {"**": []}
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    # Next to the folders of all versions; docs/versions.py writes it after the build.
    "switcher": {"json_url": "../switcher.json", "version_match": release},
    "check_switcher": False,
    "show_version_warning_banner": True,
}
