"""How a command ends when it cannot do what it was asked: one line on stderr and an exit status (CONTRACT 1)."""

from __future__ import annotations


class Failed(Exception):
    """Wrong usage, configuration, fixture or scenario, a taken port, a state directory in use."""

    status = 2


class CheckFailed(Failed):
    """A check or a story failed; the text may be empty where the command has said it already."""

    status = 1


class StateDamaged(Failed):
    """The stored state is damaged; the text names file and offset."""

    status = 3
