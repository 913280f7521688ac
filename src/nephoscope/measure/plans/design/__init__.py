"""Experimental design: which combinations run, in which order, and what each is compared with."""
