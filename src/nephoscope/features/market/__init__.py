"""Server types of clouds by performance and price, from imported measurements and price lists."""
