"""`openapi`, `collection`, `docs` and `completion`: print documents without a running bank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from emulator.cli.bank import show
from emulator.cli.options import bank_url, completing, output_option
from emulator.failure import Failed, working_with


@click.command(epilog="Example: bank-emulator openapi > bank.json")
@click.option("--control", is_flag=True, help="Print the document of the control interface /_emulator instead.")
def openapi(control: bool) -> None:
    """Print the OpenAPI 3.1 document of the TPP interface."""
    if control:
        from emulator.control.operations import document as control_document

        shown = control_document("http://127.0.0.1:8080")
    else:
        from emulator.api.description.openapi import published

        shown = published()
    click.echo(json.dumps(shown, indent=2, ensure_ascii=False))


@click.command(
    epilog="""\b
The requests are not signed: send them through the signing proxy. --proxy
is its address, which becomes the variable baseUrl of the collection.
Example: bank-emulator collection > bank.postman.json
Example: bank-emulator collection --format bruno --directory bank-collection
"""
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["postman", "bruno"]),
    default="postman",
    help="The kind of collection.",
)
@click.option(
    "--proxy",
    metavar="URL",
    default="http://127.0.0.1:9090",
    help="The address of the signing proxy.",
)
@click.option("--directory", metavar="DIR", help="The folder for a Bruno collection; created if it is missing.")
def collection(kind: str, proxy: str, directory: str | None) -> None:
    """Print a Postman collection, or write a Bruno one."""
    from emulator.api.description.collection import bruno, postman

    base = bank_url(proxy, "--proxy")
    if kind == "postman":
        if directory is not None:
            raise Failed("--directory goes with --format bruno; a Postman collection is printed")
        click.echo(json.dumps(postman(base), indent=2, ensure_ascii=False))
        return
    if directory is None:
        raise Failed("--format bruno writes several files: name their folder with --directory DIR")
    _write(Path(directory), bruno(base))


def _write(folder: Path, files: dict[str, str]) -> None:
    with working_with(f"--directory {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Failed(f"--directory {folder}: it is not empty")
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    click.echo(str(folder))


@click.command(
    epilog="""\b
Store it where the shell looks for completions:
bash: ~/.local/share/bash-completion/completions/bank-emulator
zsh:  ~/.zfunc/_bank-emulator
fish: ~/.config/fish/completions/bank-emulator.fish
Example: bank-emulator completion zsh > ~/.zfunc/_bank-emulator
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    script = get_completion_class(shell)
    if script is None:
        raise Failed(f"there is no completion for {shell}")
    click.echo(script(ctx.find_root().command, {}, "bank-emulator", "_BANK_EMULATOR_COMPLETE").source())


def _pages(_context: click.Context) -> list[str]:
    from emulator import manual

    return [address.rpartition("/")[2] for address in manual.pages()]


@click.command(
    epilog="""\b
Example: bank-emulator docs flags
Example: bank-emulator docs payee_check
"""
)
@click.argument("topic", nargs=-1, shell_complete=completing(_pages))
@output_option
def docs(topic: tuple[str, ...], output: str) -> None:
    """Print the manual: a page, or the sections about TOPIC. Without TOPIC it lists the pages."""
    shown, text = _documented(" ".join(topic))
    show(shown, output, lambda _: click.echo(text))


def _documented(wanted: str) -> tuple[dict[str, Any], str]:
    """What the manual says about a topic, as JSON and as text; raises Failed for nothing."""
    from emulator import manual

    if not wanted:
        groups = manual.contents()
        listed = [
            {"page": page.address, "title": page.title, "group": group.title}
            for group in groups
            for page in group.pages
        ]
        lines = []
        for group in groups:
            titles = [f"  {page.address.rpartition('/')[2]:24} {page.title}" for page in group.pages]
            lines += [group.title, "", *titles, ""]
        return {"pages": listed}, "\n".join(lines)
    named = manual.named(wanted)
    if named and isinstance(named[0], manual.Page):
        page = named[0]
        return {"page": page.address, "title": page.title, "text": page.text}, page.text.rstrip()
    if named:
        shown = [{"address": one.address.strip("/"), "text": one.text.strip()} for one in named]
        return {"sections": shown}, "\n".join(f"{one['address']}\n\n{one['text']}\n" for one in shown)
    hits = manual.search(wanted, manual.entries())
    if not hits:
        raise Failed(f"the manual has nothing about {wanted}; bank-emulator docs lists its pages")
    places = [{"address": hit.entry.address.strip("/"), "title": hit.entry.title or hit.entry.place} for hit in hits]
    return {"hits": places}, "\n".join(f"{place['address']}: {place['title']}" for place in places)


COMMANDS = {"openapi": openapi, "collection": collection, "docs": docs, "completion": completion}
