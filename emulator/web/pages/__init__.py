"""Pages for people: the SCA pages, `/my`, and what they share with the console and the documentation."""
