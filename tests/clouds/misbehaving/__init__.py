"""A cloud that misbehaves on command: a test double of Amazon EC2."""
