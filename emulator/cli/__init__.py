"""The command line. `main` lists the commands; the module of a command is imported when it is called.

The list of commands and the completion import the modules of all commands, which therefore import what a command needs
only in the command itself.
"""
