"""The example project is run by tests/e2e/test_plugin.py, in a pytest of its own."""

collect_ignore = ["shop"]
