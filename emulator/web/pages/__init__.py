"""HTML pages: the SCA pages, /my, the documentation at /docs, and the modules that they share with the console."""
