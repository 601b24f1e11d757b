"""The tutorial on backends, typed line by line into an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/writing-a-backend.md"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)


def edited(text: str, where: str, lines: str) -> str:
    """The plug-in's module after an edit that the page asks for."""
    if where == "imports":
        return text.replace(
            "from flambeau.backend import (\n", f"from flambeau.backend import (\n    {lines.strip()},\n"
        )
    if where == "before KERNELS":
        return text.replace("KERNELS = {\n", f"{lines}\n\nKERNELS = {{\n")
    if where == "into flambeau_backends":
        return text.replace("    return [\n", f"    return [\n{lines}")
    if where == "into KERNELS, instead of round":
        text = re.sub(r'    "round": .*\n', "", text)
    else:
        assert where == "into KERNELS", where
    return text.replace("KERNELS = {\n", f"KERNELS = {{\n{lines}")


@pytest.mark.packaging
def test_every_line_works(tmp_path):
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # What is installed here is installed there, but for what the page installs itself.
    (site / "others.pth").write_text(f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "FLAMBEAU"))},
        "PATH": f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"

    kinds = []
    module = folder / "flambeau-abacus" / "flambeau_abacus.py"
    for language, block in BLOCK.findall(PAGE.read_text()):
        edit = re.match(r"# ((?:into|before|imports).*)\n", block)
        if edit:
            module.write_text(edited(module.read_text(), edit[1], block[edit.end() :]))
        elif language == "sh":
            run("bash", "-ec", block)
        else:
            run(str(tmp_path / "venv" / "bin" / "python"), "-c", block)
        kinds.append("edit" if edit else language)
    assert (kinds.count("sh"), kinds.count("python"), kinds.count("edit")) == (8, 5, 8)
    assert len(module.read_text().splitlines()) < 150
    assert sys.executable != str(tmp_path / "venv" / "bin" / "python")
