"""Reference data: Norwegian numbers, countries and banking days."""
