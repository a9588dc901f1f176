"""The command line. `main` lists the commands; the module of a command is imported when it is called."""
