"""The tables and figures of each study, as its own lists or captions name them."""

from __future__ import annotations

LISTED = {
    "delgado-2010": """
Table 3.1: Comparison of Eucalyptus networking modes
Table 3.2: Numeric results of the cpu test
Table 3.3: Numeric results of the memory bandwidth test
Table 3.4: Latency stress test results
Table 4.1: Distribution of Twitter user base
Table 4.2: Delays experienced by Twitter's end-users
Figure 2.1: Cloud computing service models
Figure 2.2: Server stack comparison between on-premise infrastructure, IaaS, and PaaS
Figure 2.3: Diagram of an hypervisor virtualization layer with 3 VMMs running
Figure 3.1: Networking outline of the private cloud
Figure 3.2: Completion time for the calculation of the number Pi
Figure 3.3: Memory bandwidth test
Figure 3.4: Small write operation
Figure 3.5: Large write operation
Figure 3.6: Small read operation
Figure 3.7: Large read operation
Figure 3.8: Iozone write test
Figure 3.9: Iozone read test
Figure 3.10: Iozone write test
Figure 3.11: Iozone read test
Figure 3.12: Postmark elapsed time
Figure 3.13: Postmark stdev from average elapsed time
Figure 3.14: Jitter stress test results
Figure 3.15: Packet loss stress test results
Figure 4.1: TCP bandwidth between two small instances in Windows Azure
Figure 4.2: TCP bandwidth between two m1.small instances in Amazon EC2
Figure 4.3: Average performance by test type and cloud
""",
    "zhuang-2012": """
Table 2.1: Instances in Amazon EC2
Table 4.1: CPU type in different instances
Table 4.2: CPU utilization rate
Table 4.3: CPU utilization of emulated instances
Table 4.4: Handling Latency of GET Request
Table 5.1: Performance variations
Table 5.2: Notations
Figure 4.1: CPU performance scores for the m1.large instance with different cpu type
Figure 4.2: CPU process sharing
Figure 4.3: Running time, waiting time, and period of m1.small instances (single-process)
Figure 4.4: Running time, waiting time, and period of m1.large instances (single-process)
Figure 4.5: Redis GET operation
Figure 4.6: Dbench workload throughput
Figure 4.7: TCP throughput of m1.large instances
Figure 4.8: UDP throughput of m1.large instances
Figure 4.9: Network latency of m1.large instances
Figure 4.10: Httperf performance of static HTTP requests
Figure 4.11: Httperf performance of dynamic HTTP requests
Figure 4.12: Traffic Shape
Figure 4.13: Energy Efficiency
Figure 5.1: Cost saving analysis
""",
    "khurshid-2009": """
Figure 1: Architecture of the Illinois CCT
Figure 2: Relative performance of read-write operations within the cloud
Figure 3: Relative performance of sequential read operations from the Illinois CCT to \
distributed PlanetLab nodes
Figure 4: Cloud-to-Cloud communication
Figure 5: Relative performance of sequential read operations at the Illinois CCT by Emulab nodes
Figure 6: Relative performance of sequential read operations at Emulab by distributed PlanetLab \
nodes
Figure 7: Comparison between TPS of the Illinois CCT and Emulab to different PlanetLab nodes
""",
    "nadeem-2015": """
Table 1: Performance Comparison of the Three Cloud Computing Software Platforms
Figure 1: Typical Eucalyptus architecture
Figure 2: Xen Cloud Platform architecture
Figure 3: OpenVZ architecture
Figure 4: CCSP performance evaluation model
Figure 5: Response efficiency: Apache benchmark results (response time)
Figure 6: Response efficiency: Apache benchmark results (number of requests per second)
Figure 7: CPU throughput: John the Ripper benchmark results
Figure 8: Memory performance: RAMspeed benchmark results
Figure 9: Cache performance: CacheBench benchmark results
Figure 10: File system I/O performance: IOzone read benchmark results
Figure 11: File system I/O performance: IOzone write benchmark results
Figure 12: LZMA benchmark results
Figure 13: Transactions per second
""",
    # The text has no list and no captions; its prose counts three tables and two figures.
    "caldwell-2011": """
Table 1: throughput of the load balancers with one generator
Table 2: throughput of the load balancers with three generators
Table 3: bandwidth by provider and class of instance
Figure 1: latency by class of instance
Figure 2: distribution of the latency of four classes
""",
}


def listed(study: str) -> list[tuple[str, str]]:
    """Name and title of each table and figure, in order."""
    lines = LISTED[study].strip().splitlines()
    return [(name, title) for name, _, title in (line.partition(": ") for line in lines)]
