"""Holds every mechanism of the lab to its truth, over the path that measurements take.

`frame` says what a check is and runs it on a lab of its own; the other files hold the checks, and
`table` lists all of them.
"""
