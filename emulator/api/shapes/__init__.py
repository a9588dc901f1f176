"""The shapes of bodies of requests and answers (SPEC 2); imported with the first body."""
