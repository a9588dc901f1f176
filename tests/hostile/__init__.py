"""The corpus of hostile input (what a client may lie about), by theme, each case with its status, code and path."""
