"""Sphinx configuration."""

project = "ackclock"
author = "The ackclock authors"
copyright = "2026, The ackclock authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "ackclock"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
