"""The demo and its data: the first 10,000 records of UCI Adult (CC BY 4.0), and schemas of these and of digits."""
