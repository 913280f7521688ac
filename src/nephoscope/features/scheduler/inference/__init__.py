"""Which scheduler takes the CPU away: from looks at the clock to a verdict in words."""
