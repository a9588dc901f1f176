"""What a bank starts from: fixtures and definitions as people write them, and the documents made of them."""
