"""Pages for people: what the SCA pages, the console and the documentation page share, and the SCA pages themselves."""
