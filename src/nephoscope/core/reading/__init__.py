"""A YAML file to checked records: values, their place in the file, one sentence for an error.

Plans, lab topologies and inventories are read by the same rules.
"""
