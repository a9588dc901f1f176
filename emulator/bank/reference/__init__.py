"""Tables of the world outside: Norwegian numbers, countries, banking days, and rates that never change."""
