"""M/M/c by salabim (with greenlets): arguments are servers, load, requests and seed."""

import json
import random
import sys
import time

import salabim


class Request(salabim.Component):
    """A request."""

    def process(self):
        """Waits for a server, is served, goes."""
        came = self.env.now()
        self.request(desk)
        self.hold(chance.expovariate(1.0))
        self.release()
        served.append(self.env.now() - came)


class Arrivals(salabim.Component):
    """Where requests come from."""

    def process(self):
        """One after the other, by Poisson."""
        for _ in range(requests):
            self.hold(chance.expovariate(load * servers))
            Request()


servers, load = int(sys.argv[1]), float(sys.argv[2])
requests, seed = int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
served = []
began = time.process_time()
world = salabim.Environment(trace=False)
desk = salabim.Resource("desk", capacity=servers)
Arrivals()
world.run()
spent = time.process_time() - began
print(json.dumps({"requests": requests, "mean": sum(served) / requests, "cpu_s": spent}))
