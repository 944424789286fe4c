"""Membership attacks, one file each."""
