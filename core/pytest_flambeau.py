"""The door by which pytest finds flambeau's conformance kit.

pytest reads the options of a package named by ``--pyargs`` only from installed plug-ins.  This one does nothing, and
imports nothing, unless the kit is what pytest was called for; then it brings the kit's options and cases.
"""

from typing import Any

KIT = "flambeau.conformance"


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> None:
    """Load the kit if an argument names it."""
    if any(each.startswith(KIT) for each in args):
        early_config.pluginmanager.import_plugin(f"{KIT}.plugin")
