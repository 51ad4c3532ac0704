"""The wheel: built from what is tracked, installed into an empty environment, run."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from support.real_daemon import started, stub_config
from support.real_daemon_demo import REPOSITORY

pytestmark = pytest.mark.integration

SHIPPED = ("llamaswap", "twisted", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")


def run(*words: str, cwd: Path) -> str:
    """Run a program to its end; returns what it printed."""
    ended = subprocess.run(words, capture_output=True, text=True, cwd=cwd, timeout=180, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a clean copy of the tree: nothing that git would not take."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SHIPPED, cwd=REPOSITORY
    )
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).exists():
            (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tree" / name).write_bytes((REPOSITORY / name).read_bytes())
    python = sys.executable
    run(python, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), cwd=folder / "tree")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel; its dependencies are ours."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel), cwd=folder)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_the_wheel_holds_what_the_daemon_reads_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert "llamaswap/py.typed" in names
    assert "llamaswap/activity/schema/0001_activity.sql" in names
    assert {"twisted/plugins/llamaswap_plugin.py", "twisted/plugins/llamaswap_reactor.py"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "bench", "etc"))]
    assert not [name for name in names if name in {"twisted/__init__.py", "twisted/plugins/__init__.py"}]
    tracked = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "llamaswap").rglob("*.py")}
    assert {name for name in names if name.startswith("llamaswap/") and name.endswith(".py")} == tracked


def test_the_installed_programs_run(installed: Path, tmp_path: Path) -> None:
    where = run(str(installed / "python"), "-c", "import llamaswap; print(llamaswap.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where, "not the working tree"

    assert run(str(installed / "llama-swap"), "-version", cwd=tmp_path).startswith("version: ")


def test_twistd_finds_the_installed_plugin(installed: Path, tmp_path: Path) -> None:
    twistd = "from twisted.scripts.twistd import run; run()"
    assert " llamaswap " in run(str(installed / "python"), "-c", twistd, "--help", cwd=tmp_path)


def test_the_installed_daemon_serves(installed: Path, tmp_path: Path) -> None:
    command = (str(installed / "llama-swap"),)
    with started(tmp_path, stub_config(tmp_path), command=command) as daemon:
        assert daemon.chat("a").status == 200
        assert len(daemon.rows(1)) == 1
