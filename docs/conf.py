"""Sphinx configuration."""

project = "ackclock"
author = "The ackclock authors"
project_copyright = "2026, The ackclock authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "lab"]
html_theme = "furo"
html_title = "ackclock"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False


def setup(app):
    """Register what is below."""
    app.connect("autodoc-process-docstring", _headings)


def _headings(_app, _what, _name, _object, _options, lines):
    """The headings of a model's docstring are Markdown; Sphinx wants them as rubrics with air around them."""
    text = []
    for line in lines:
        text += ["", f".. rubric:: {line[3:]}", ""] if line.startswith("## ") else [line]
    lines[:] = text
