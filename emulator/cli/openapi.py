"""`bank-emulator openapi`: the OpenAPI documents, without a running bank."""

from __future__ import annotations

import json

import click


@click.command(name="openapi", epilog="Example: bank-emulator openapi > bank.json")
@click.option("--control", is_flag=True, help="The control interface /_emulator instead of the TPP interface.")
def command(control: bool) -> None:
    """Print the OpenAPI 3.1 document of the TPP interface."""
    if control:
        from emulator.control.openapi import document as control_document

        shown = control_document("http://127.0.0.1:8080")
    else:
        from emulator.api.openapi import document

        shown = document()
    click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
