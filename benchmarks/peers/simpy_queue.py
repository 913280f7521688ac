"""M/M/c by SimPy: arguments are servers, load, requests and seed."""

import json
import random
import sys
import time

import simpy


def main(servers: int, load: float, requests: int, seed: int) -> None:
    chance = random.Random(seed)
    world = simpy.Environment()
    desk = simpy.Resource(world, servers)
    total = 0.0

    def request():
        nonlocal total
        came = world.now
        with desk.request() as turn:
            yield turn
            yield world.timeout(chance.expovariate(1.0))
        total += world.now - came

    def arrivals():
        for _ in range(requests):
            yield world.timeout(chance.expovariate(load * servers))
            world.process(request())

    began = time.process_time()
    world.process(arrivals())
    world.run()
    spent = time.process_time() - began
    print(json.dumps({"requests": requests, "mean": total / requests, "cpu_s": spent}))


main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
