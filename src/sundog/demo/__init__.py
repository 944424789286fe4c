"""The data of `sundog demo`: the first 10,000 records of UCI Adult (CC BY 4.0), and its schema; that of digits."""
