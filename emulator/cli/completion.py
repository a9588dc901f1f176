"""`bank-emulator completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from emulator.cli.failure import Failed

EPILOG = """\b
Example, bash: bank-emulator completion bash > ~/.local/share/bash-completion/completions/bank-emulator
zsh:  bank-emulator completion zsh > ~/.zfunc/_bank-emulator
fish: bank-emulator completion fish > ~/.config/fish/completions/bank-emulator.fish
"""


@click.command(name="completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise Failed(f"there is no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "bank-emulator", "_BANK_EMULATOR_COMPLETE").source())
