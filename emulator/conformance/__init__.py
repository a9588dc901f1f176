"""Checks that judge the behaviour of a TPP, on a running bank or by a plan, and their report (CONTRACT 17)."""
