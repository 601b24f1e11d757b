"""The examples run, learn, and reload what they saved."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, tmp_path: Path, *options: str) -> str:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a fresh process gives the same outputs, bit for bit" in done.stdout
    return done.stdout


def accuracy(output: str) -> float:
    match = re.fullmatch(r"test accuracy (\d+\.\d) %", output.splitlines()[-1])
    assert match, output
    return float(match[1])


def test_digits(tmp_path):
    output = run("digits", tmp_path, "--epochs", "5")
    assert accuracy(output) >= 96
    assert "confusion matrix" in output and re.search(r"cpu served \d+ operators: .*conv", output)
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_mlp(tmp_path):
    assert accuracy(run("mlp", tmp_path)) >= 94


def test_char_lstm(tmp_path):
    output = run("char_lstm", tmp_path, "--epochs", "1", "--batch", "32")
    bits, uniform = map(
        float, re.search(r"held-out text: (\S+) bits a letter \(uniform guessing: (\S+)\)", output).groups()
    )
    assert bits < 0.7 * uniform


@pytest.mark.parametrize("name", ["digits", "mlp", "char_lstm"])
def test_help(name):
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--epochs" in done.stdout
