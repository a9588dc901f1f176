"""Metrics for Prometheus: what a process counts, the table of its metrics, and their page.

`counts.py` is changed where things happen, `table.py` reads it, and `page.py` answers `/metrics`.
"""
