"""Settings of the documentation site: `make docs` builds it in docs/_build/html, without the network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # docs/extensions

import quanet  # noqa: E402

project = "quanet"
author = "The quanet developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
version = release = quanet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
    "extensions.pages_from_outside",
    "extensions.api_pages",
    "extensions.command_pages",
    "extensions.linked_names",
    "extensions.native_math",
]
root_doc = "index"
exclude_patterns = ["_build", "gallery", "extensions", "auto_gallery/*.ipynb", "auto_gallery/*.py"]
default_role = "py:obj"
suppress_warnings = ["config.cache"]  # settings of the gallery contain functions

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "bysource"
# scikit-learn adds these to every estimator.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request, "
    "set_transform_request, set_partial_fit_request, get_metadata_routing"
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE / "gallery"),
    "gallery_dirs": "auto_gallery",
    "backreferences_dir": "auto_gallery/uses",
    "doc_module": ("quanet",),
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,  # a failing example ends the build and is named
    "download_all_examples": False,
    "notebook_images": False,
    "remove_config_comments": True,
    "image_scrapers": ("extensions.gallery_figures.scrape_figures",),  # quanet's figures are not pyplot's
    "reset_modules": ("matplotlib", "extensions.gallery_figures.reset_style"),  # one style for all pictures
    "ignore_repr_types": r"matplotlib[.]",
    "image_srcset": ["2x"],
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
}

llms_txt_title = "quanet"
llms_txt_summary = (
    "quanet estimates the prevalence of each class in sets of unlabelled items (quantification), with intervals, "
    "as a Python library, a command line and a service."
)
llms_txt_exclude = ["search", "genindex", "changelog", "auto_gallery/sg_execution_times", "sg_execution_times"]
llms_txt_uri_template = "{base_url}{docname}.html"

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "quanet"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = True  # llms-full.txt is made of the sources
html_theme_options = {
    "logo": {"text": "quanet", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navigation_with_keys": False,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
    "search_bar_text": "Search: a method, a question, an option",
}
html_sidebars = {"index": [], "auto_gallery/index": []}


def setup(app):
    """Show tables of comma-separated values as they are."""
    from pygments.lexers.special import TextLexer

    app.add_lexer("csv", TextLexer)
