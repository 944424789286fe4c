"""The two protocols of the tally, as state machines without network, database, clock or log.

`peers`: pairwise masks and Shamir shares, with no other authority than the members of a group (`peers_client.py`,
`peers_tally.py`). `keepers`: one message a client, and masks that any two of three keepers can remove from the sum
(`keepers_client.py`, `keeper.py`, `keepers_tally.py`).
"""
