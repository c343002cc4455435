"""The project as a whole: what importing costs, who imports whom, and that its files agree."""

from __future__ import annotations

import ast
import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import yaffjit
from yaffjit.cli import main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "yaffjit"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
MAX_LINES = 500
CONDA_NAMES = {"xxhash": "python-xxhash"}
HEAVY = (
    "numba",
    "llvmlite",
    "pyarrow",
    "pandas",
    "grpc_tools",
    "google.protobuf",
    "importlib.metadata",
    "tqdm",
)
DEMO_ROWS = 20_000


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    # -S: a site-packages .pth file may import what it likes, which isn't ours to answer for.
    listing = run_python(f"import sys, yaffjit; print([name for name in {HEAVY} if name in sys.modules])")
    assert listing == "[]"


def test_every_public_name_has_a_home() -> None:
    assert set(yaffjit.__all__) == set(yaffjit._HOMES)
    for name in yaffjit.__all__:
        assert getattr(yaffjit, name).__module__.startswith("yaffjit."), name


def test_imports_go_downwards_only() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Imports go downwards only KEPT" in done.stdout


def read_project() -> dict[str, list[str]]:
    project: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def test_environment_file_has_the_same_dependencies() -> None:
    listed = re.findall(r"^  - ([\w-]+>=.*)$", (ROOT / "environment.yml").read_text(), re.MULTILINE)
    wanted = [f"python{read_project()['requires-python']}"]
    for requirement in read_project()["dependencies"]:
        name = requirement.partition(">=")[0]
        wanted.append(requirement.replace(name, CONDA_NAMES.get(name, name), 1))
    assert listed == wanted


def test_changelog_names_the_version() -> None:
    assert f"## {yaffjit.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_short_and_says_its_idea(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    tree = ast.parse(text)
    assert not tree.body or ast.get_docstring(tree)
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"exec", "eval"}


@pytest.mark.parametrize("name", ["demo", "test"])
def test_readme_command_is_one_line_in_a_new_environment(name: str) -> None:
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(rf"<!-- command: {name} -->\n```sh\n(.*?)```\n", readme, re.DOTALL)
    assert block.count("\n") == 1
    assert block.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_ci_runs_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "readme_command demo" in script and "readme_command test" in script
    assert "pip install -q -e" not in script


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the examples of the pages read, as the README says to make them."""
    folder = tmp_path_factory.mktemp("pages")
    assert main(["demo", "--rows", str(DEMO_ROWS), "--keep", str(folder)]) == 0
    (folder / "banners.arrow").unlink()
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(
    page: Path, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for name in ("ads.proto", "banners.pb"):
        shutil.copy(demo_folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_pages_have_examples() -> None:
    assert "```pycon" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target
