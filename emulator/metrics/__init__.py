"""Metrics for Prometheus: what a process counts, the table of its metrics, and their page.

`counts.py` is changed where things happen; `page.py` has the table, which reads it, and answers `/metrics`.
"""
