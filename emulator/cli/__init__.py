"""The command line. `main` lists the commands; the module of a command is imported when it is called.

The list of commands and the completion import the modules of all commands, which therefore import what a command needs
only in the command itself. A command that is one operation of the control interface is a row of `NOUNS` (`control.py`),
another one within a group a function in the module of the group; a new word at the top is a line of `COMMANDS`. It has
an example in its help and `--output`, which `tests/api/test_output_json.py` demands of all but those in `WITHOUT`.
`python -m tests.docs.sections` writes the list in command-line.md.
"""
