"""Tables, what is measured on them, and the peers that learn them in environments of their own."""
