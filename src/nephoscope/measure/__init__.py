"""All that acts on machines: plans, targets, labs and the execution of plans."""
