"""Configure Sphinx: Markdown pages, and reference pages that are made from the product's own lists."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "trigmon"
author = "the trigmon developers"
copyright = "the trigmon developers, Apache-2.0"
release = version = installed_version("trigmon")

extensions = ["myst_parser", "sphinx_click", "product_lists"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# A link that leads nowhere is a warning, and the build turns warnings into errors.
nitpicky = True

html_theme = "furo"
html_title = "trigmon"
html_copy_source = False
html_show_sphinx = False
