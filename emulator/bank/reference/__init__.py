"""Tables of the outside world: Norwegian numbers, countries and banking days."""
