"""Stores on object storage (S3, Azure Blob Storage, Google Cloud Storage).

A folder of this machine mirrors such a store in the layout of a local one, so that every reader and
writer of files works on it unchanged. `mirror` brings into it what is needed and publishes from it
what changed; `object_index` finds runs without listing; `primitives` is all that a service has to
offer. docs/decisions/0090-stores-on-object-storage.md has the reasons.
"""
