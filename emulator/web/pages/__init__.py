"""HTML pages: the SCA pages, `/my`, and the modules they share with the console and the documentation."""
