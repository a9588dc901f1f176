"""The domain: customers, accounts, money, consent, SCA and payments, without HTTP and without I/O.

    bank.py, documents.py, kinds.py    one bank, and what it stores: the first argument of every function here
    settings.py, clock.py, ids.py      what makes banks differ: nothing else reads the time or draws at random
    formats, money, reference, problems, errors, validation    values, and what is wrong with them
    conditions.py                      conditions in rules, stories, feeds and checks
    feed, notifications, notification_targets, snapshots       one subject each
    settlement.py                      the money of payments
    threads.py                         its long work

The packages: `customers` (consents and sessions, too), `accounts`, `authentication`, `payment` with the rules of
`scheme` and the `products`, `sandbox` (data that a TPP makes), `fixtures` (data from files).
"""
