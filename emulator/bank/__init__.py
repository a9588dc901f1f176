"""The domain: customers, accounts, money, consent, SCA and payments, without HTTP and without I/O."""
