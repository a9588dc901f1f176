"""`bank-emulator collection`: the TPP interface as a collection for a REST client, without a running bank."""

from __future__ import annotations

import json
from pathlib import Path

import click

from emulator.cli.failure import Failed

EPILOG = """\b
Its requests are unsigned: send them through the signing proxy, to whose
address --proxy sets the variable baseUrl.
Example: bank-emulator collection > bank.postman.json
Example: bank-emulator collection --format bruno --directory bank-collection
"""


@click.command(name="collection", epilog=EPILOG)
@click.option("--format", "kind", type=click.Choice(["postman", "bruno"]), default="postman", show_default=True)
@click.option("--proxy", metavar="URL", default="http://127.0.0.1:9090", show_default=True, help="The proxy's address.")
@click.option("--directory", metavar="DIR", help="Where the files of a Bruno collection go; made when missing.")
def command(kind: str, proxy: str, directory: str | None) -> None:
    """Print a Postman collection, or write a Bruno one."""
    from emulator.api.collection import bruno, postman

    base = proxy.rstrip("/")
    if kind == "postman":
        if directory is not None:
            raise Failed("--directory is for --format bruno; a Postman collection is one file, printed")
        click.echo(json.dumps(postman(base), indent=2, ensure_ascii=False))
        return
    if directory is None:
        raise Failed("--format bruno writes several files: say where with --directory DIR")
    _write(Path(directory), bruno(base))


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Failed(f"--directory {folder}: it is not empty")
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failed(f"--directory {folder}: {error.strerror or error}") from error
    click.echo(str(folder))
