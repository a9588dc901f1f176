"""The readers of foreign input, given made-up bytes until something other than a refusal comes out."""
