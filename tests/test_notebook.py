"""The notebooks run, and print what is stored in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NAMES = (
    "01_open_an_index.ipynb",
    "02_your_own_features.ipynb",
    "03_train_a_model.ipynb",
    "04_a_schema_that_changes.ipynb",
    "05_representations.ipynb",
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def text_outputs(cell: Any) -> list[str]:
    """What a cell printed and its value, as text, in order."""
    texts = []
    for output in cell.get("outputs", ()):
        texts.append(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
    return texts


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == list(NAMES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_prints_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel of this very environment, whatever kernels the user has installed.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    stored = nbformat.read(path, as_version=4)
    executed = nbformat.read(path, as_version=4)
    NotebookClient(
        executed, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for number, (before, after) in enumerate(zip(stored.cells, executed.cells, strict=True)):
        assert text_outputs(after) == text_outputs(before), f"cell {number}: run the notebook and save it"
    assert any(text_outputs(cell) for cell in stored.cells)
