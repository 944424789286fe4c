"""The protocol of the text (Fig. 4.1), as a peer of the benchmark and as the weaker protocol of attacks in tests."""
