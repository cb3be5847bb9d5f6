"""The notebook in examples/ runs from its first cell to its last, and says what it says in the repository."""

import base64
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient")

import nbformat
from nbclient import NotebookClient

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "incident.ipynb"
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def executed():
    """What it is after a run; KGROUP_UPDATE_GOLDEN=1 keeps it so."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = NotebookClient(notebook, timeout=1500, resources=where, record_timing=False)
    done = client.execute(env=environment)
    if os.environ.get("KGROUP_UPDATE_GOLDEN"):
        done.metadata.pop("widgets", None)
        nbformat.write(done, NOTEBOOK)
    return done


def answers(notebook, kind):
    """The outputs of one media type, in the order of the cells."""
    return [
        output["data"][kind]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def test_it_answers_what_readers_see_in_it(executed):
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert answers(executed, "text/plain") == answers(kept, "text/plain")
    assert len(answers(kept, "text/html")) == 3
    nbformat.validate(kept)


def test_it_draws_its_pictures(executed):
    pictures = [base64.b64decode(picture) for picture in answers(executed, "image/png")]
    assert len(pictures) == 3
    assert all(picture.startswith(PNG) and len(picture) > 5_000 for picture in pictures)


def test_no_cell_complains(executed):
    said = [output for cell in executed.cells for output in cell.get("outputs", ())]
    assert {output.output_type for output in said} == {"display_data", "execute_result"}
