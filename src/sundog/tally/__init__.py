"""Private aggregation: a server learns the sum of its users' vectors, and nothing about any one of them."""
