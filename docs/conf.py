"""Sphinx configuration."""

from importlib.metadata import version as installed_version

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
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autosummary_generate = True
napoleon_google_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = f"Evergrow {release}"
html_sidebars = {"**": []}
html_static_path = ["_static"]
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
