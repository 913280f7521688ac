"""Server types of clouds with their measured figures: one file of a store, written in parts."""
