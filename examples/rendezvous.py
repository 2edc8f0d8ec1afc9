#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The ranks of a distributed job meet, as those of torch do, with nothing but Python's own library:
#
#     berth run --ranks -n 4 --label -- python3 examples/rendezvous.py
#
# Rank 0 listens at MASTER_ADDR:MASTER_PORT. All others tell it who they are and which devices they see, and hear
# of everybody. Each prints whom it met.
import json
import os
import socket
import time

PATIENCE_S = 30

rank = int(os.environ["RANK"])
world_size = int(os.environ["WORLD_SIZE"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
self = {"rank": rank, "devices": os.environ["BERTH_DEVICES"]}


def connect():
    """Rank 0 may not listen yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(master, timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def gather():
    """Rank 0: hears everybody, then tells everybody."""
    met = [self]
    with socket.create_server(master, backlog=world_size) as server:
        server.settimeout(PATIENCE_S)
        files = [server.accept()[0].makefile("rw") for _ in range(world_size - 1)]
        met += [json.loads(file.readline()) for file in files]
        met.sort(key=lambda other: other["rank"])
        for file in files:
            file.write(json.dumps(met) + "\n")
            file.close()
    return met


def join():
    """Everybody else: tells rank 0, then hears the answer."""
    with connect() as connection, connection.makefile("rw") as file:
        file.write(json.dumps(self) + "\n")
        file.flush()
        return json.loads(file.readline())


met = gather() if rank == 0 else join()
assert [other["rank"] for other in met] == list(range(world_size)), met
print(f"rank {rank} of {world_size} met " + " ".join(f"{other['rank']}={other['devices']}" for other in met), flush=True)
