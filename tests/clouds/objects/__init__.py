"""A small object store with the interface of S3, as strict about signatures as Amazon's."""
