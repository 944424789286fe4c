"""The demo and its data: the first 10,000 training and 5,000 test records of UCI Adult (CC BY 4.0), and schemas."""
