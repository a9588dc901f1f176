"""Descriptions of the TPP interface for other programs: its OpenAPI document, collections for REST clients, examples.

`writer.py` writes OpenAPI documents, those of the control interface too; `openapi.py` is the one of the TPP interface.
"""
