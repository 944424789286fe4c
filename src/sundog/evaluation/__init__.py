"""Utility of synthetic data: how close it is to the real data, and how useful for the tasks people use data for."""
