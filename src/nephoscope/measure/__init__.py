"""What touches machines: plans, targets, labs and the execution of plans."""
