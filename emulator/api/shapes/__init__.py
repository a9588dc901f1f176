"""The shapes of bodies: what requests must look like, and what answers do (SPEC 2). Imported with the first body."""
