"""Events, accounting, noise and mechanisms: the only code that draws noise or spends budget.

`events` describe what a mechanism does, `accountant` reads them, `ledger` refuses before a spend, `mechanisms` measure
and charge in one call, `noise` is where randomness comes from, `calibration` answers how much noise a budget needs.
"""
