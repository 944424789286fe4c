"""Sums over many people that nobody sees singly: the wire format (`wire/`) and the protocols (`protocol/`)."""
