"""The report on the TPP: checks that judge what a client does, on a running bank or by a plan (CONTRACT 17)."""
