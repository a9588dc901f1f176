"""Who the customers are, what they may reach, and the consents and sessions by which a TPP acts for them."""
