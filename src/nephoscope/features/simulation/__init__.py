"""Plans, analyses and reports simulations of sites, schedulers and instance selection."""
