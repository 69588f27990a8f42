"""Writes the notebooks as editions to hand out, and the slides of the lesson.

    .local/python/bin/python scripts/editions.py [--out DIR]

DIR/student has no solutions, DIR/instructor shows them; each holds every notebook as .ipynb, .html and,
where a Chromium is found, .pdf. DIR/slides.html has the cells of notebooks 1 to 4 whose metadata call
them slides, for reveal.js, which a browser loads from the network.
"""

import argparse
import copy
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import nbformat
from latex2mathml.converter import convert
from nbconvert import HTMLExporter, SlidesExporter
from nbconvert.preprocessors import TagRemovePreprocessor

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
# On paper nothing can be scrolled: lines break, tables are small, and no column is left for prompts.
STYLE = """<style>math[display="block"] { margin: 1em 0; font-size: 90% }
@media print {
  @page { margin: 12mm }
  .jp-Notebook { padding: 0 !important }
  .jp-InputPrompt, .jp-OutputPrompt { display: none !important }
  .jp-OutputArea-output, .jp-OutputArea-output * { overflow: visible !important; max-height: none !important }
  pre { white-space: pre-wrap !important; overflow-wrap: anywhere }
  .jp-OutputArea-output pre, .jp-OutputArea-output table { font-size: 10px !important; line-height: 1.3 }
  .jp-OutputArea-output td, .jp-OutputArea-output th { padding: 2px 5px !important }
  h1, h2, h3 { break-after: avoid }
}</style>"""
FORMULA = re.compile(r"(?P<code>`+).+?(?P=code)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$]+)\$", re.DOTALL)
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def student(notebook):
    """The notebook without its solutions."""
    edition = copy.deepcopy(notebook)
    edition.cells = [cell for cell in edition.cells if "solution" not in tags(cell)]
    return edition


def instructor(notebook):
    """The notebook with its solutions unfolded."""
    edition = copy.deepcopy(notebook)
    for cell in edition.cells:
        if "solution" in tags(cell):
            cell.metadata.get("jupyter", {}).pop("source_hidden", None)
    return edition


def slides(notebooks):
    """One notebook of the cells that are slides; code that is folded stays folded."""
    deck = nbformat.v4.new_notebook(metadata=notebooks[0].metadata)
    for notebook in notebooks:
        deck.cells += [copy.deepcopy(cell) for cell in notebook.cells if "slideshow" in cell.metadata]
    for number, cell in enumerate(deck.cells):
        cell.id = f"slide-{number}"
    return deck


def mathml(formula):
    """A formula as MathML, which browsers show without help; Markdown finds nothing to read in it."""
    if formula["code"]:
        return formula[0]
    block = formula["block"]
    made = convert(block or formula["inline"], display="block" if block else "inline")
    return re.sub(r"[*_()|\[\]](?=[^<>]*<)", lambda character: f"&#{ord(character[0])};", made)


def page(exporter, notebook):
    """The notebook as HTML, without the code that is folded in it."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = FORMULA.sub(mathml, cell.source)
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata.setdefault("tags", []).append("folded")
    exporter.register_preprocessor(TagRemovePreprocessor(remove_input_tags={"folded"}), enabled=True)
    return exporter.from_notebook_node(notebook)[0].replace("</head>", STYLE + "</head>", 1)


def save(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".tmp")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def pdf(browser, page):
    """Prints a page; a profile of its own keeps it apart from a browser that runs."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [browser, "--headless", "--no-sandbox", f"--user-data-dir={profile}", "--no-pdf-header-footer",
             "--virtual-time-budget=20000", f"--print-to-pdf={page.with_suffix('.pdf')}", page.as_uri()],
            check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".local/editions")
    arguments = parser.parse_args()
    browser = next(filter(None, map(shutil.which, [os.environ.get("CHROMIUM", ""), *BROWSERS])), None)
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    notebooks = [nbformat.read(path, as_version=4) for path in paths]
    for edition in (student, instructor):
        for path, notebook in zip(paths, notebooks):
            base = arguments.out.resolve() / edition.__name__ / path.name
            made = edition(notebook)
            save(base, nbformat.writes(made))
            save(base.with_suffix(".html"), page(HTMLExporter(), made))
            if browser:
                pdf(browser, base.with_suffix(".html"))
    save(arguments.out / "slides.html", page(SlidesExporter(), slides(notebooks[1:5])))
    print(f"{len(paths)} notebooks, two editions, slides: {arguments.out}"
          + ("" if browser else "; no Chromium was found, so no PDF"))


if __name__ == "__main__":
    main()
