"""The notebooks of the documentation run in a real kernel, from top to bottom, and show what their page says."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from notebook_drawing import NOTEBOOK, cells_of, normalised

from .documents import EXAMPLES

NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))
MISSING = [name for name in ("nbclient", "ipykernel") if importlib.util.find_spec(name) is None]
needs_jupyter = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (make full installs them)"
)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel leaves nothing in somebody's home."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in [name for name in os.environ if name.startswith("CONCERTINO_")]:
        monkeypatch.delenv(name)


def executed(notebook: Path, folder: Path, *more: str) -> list[Any]:
    """The code cells with their outputs, and those of cells that are added at the end."""
    from nbclient import NotebookClient

    # By name: it has no type hints.
    nbformat = importlib.import_module("nbformat")
    document = nbformat.read(notebook, 4)
    document.cells += [nbformat.v4.new_code_cell(source) for source in more]
    NotebookClient(document, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in document.cells if cell.cell_type == "code"]


def shown(cell: Any) -> dict[str, str]:
    """What a cell shows beside text, by kind."""
    (output,) = [each for each in cell.outputs if each.output_type in ("display_data", "execute_result")]
    return dict(output.data)


def printed(cell: Any) -> str:
    return "".join(each.text for each in cell.outputs if each.output_type == "stream" and each.name == "stdout")


@needs_jupyter
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client", "ignore::DeprecationWarning:zmq")
def test_the_first_run_shows_pool_run_and_graph_in_a_notebook(tmp_path: Path) -> None:
    awaited = (
        "again = await ct.Orchestrator(ScriptedModel('<answer>4</answer>')).run('2 + 2?', pool=pool)\nagain.answer"
    )
    pool, run, graph, stream, more = executed(NOTEBOOK, tmp_path, awaited)
    assert "Count how often one letter occurs in a text." in shown(pool)["text/html"]
    assert shown(pool)["text/plain"].startswith("<Pool ")
    for told in ("Which has more", "banana", "answered", "PARSE_ERR", "did you mean count_letter?"):
        assert told in shown(run)["text/html"]
    assert "<svg" in shown(graph)["text/html"]
    assert "after 1.a, 1.o" in shown(graph)["text/plain"]
    assert printed(graph) == ""
    assert printed(stream) == "count_letter OK 2\nanswer: 2\n"
    # A loop runs in a notebook: `run_sync` worked in the cells above, and `await` works beside it.
    assert shown(more)["text/plain"] == "'4'"
    # The page shows the very drawing that the notebook draws.
    page = NOTEBOOK.with_suffix(".html").read_text(encoding="utf-8")
    assert normalised(shown(graph)["text/html"]) == page.rstrip("\n"), "run: make reference"


def test_no_notebook_is_without_a_test_that_runs_it() -> None:
    assert NOTEBOOKS == [NOTEBOOK]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []
    assert document["metadata"]["kernelspec"]["name"] == "python3"
    assert set(document["metadata"]) == {"kernelspec", "language_info"}


def test_the_page_on_notebooks_shows_every_cell() -> None:
    page = (EXAMPLES.parent / "how-to" / "use-a-notebook.md").read_text(encoding="utf-8")
    shown_cells = re.findall(r"```python\n(.*?)\n```", page, re.S)
    assert shown_cells == cells_of(NOTEBOOK)
