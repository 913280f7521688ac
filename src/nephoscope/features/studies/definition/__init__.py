"""The records of study.yaml and tables.yaml."""
