"""A cloud in one Linux box: hosts, switches and links of namespaces, groups and queues.

A topology file is read (`files`), laid out without touching anything (`layout`), made (`bringup`),
changed in place (`conditions`) and removed by its prefix (`sweep`).
"""
