"""The conformance kit: what a backend must do, as tests that a backend's author runs.

    pytest --pyargs flambeau.conformance --device=NAME [--provider=NAME] [--operators=add,mul] [--json=FILE]

runs from any directory and needs the core, the plug-in and pytest.  ``docs/conformance.md`` explains what each
category proves.  Without pytest::

    suite = Suite("cpu", only=["add"])
    outcomes = [suite.run(case) for case in suite.cases()]
"""
