"""What work costs: prices of offers, cost per unit of work, saving by instance selection."""
