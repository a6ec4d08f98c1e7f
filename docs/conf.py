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
exclude_patterns = ["_build", "versions.py"]
autodoc_typehints = "none"
autosummary_generate = True
napoleon_google_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = f"Evergrow {release}"
html_sidebars = {"**": []}
html_static_path = ["_static"]
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    # Next to the folders of all versions; docs/versions.py writes it after the build.
    "switcher": {"json_url": "../switcher.json", "version_match": release},
    "check_switcher": False,
    "show_version_warning_banner": True,
}
