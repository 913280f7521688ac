"""The shape of traffic, and the energy that a mobile radio needs for it."""
