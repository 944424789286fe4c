"""The `.sundog` file: what is in it, who signed it, what it promises, and the records it can make."""
