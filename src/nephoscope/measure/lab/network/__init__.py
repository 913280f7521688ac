"""The network of a lab: addresses, namespaces, links and what they do to packets."""
