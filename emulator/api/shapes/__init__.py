"""The shapes of bodies of requests and answers; imported with the first body."""
