#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The ranks of a distributed job meet as torch's ranks do, with only Python's own library:
#
#     berth run --ranks -n 4 --label -- python3 examples/rendezvous.py
#
# Rank 0 listens at MASTER_ADDR:MASTER_PORT. The other ranks send it their rank and devices, and
# get the list of all ranks. Each rank prints which ranks it met.
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
    """Connect, and retry while rank 0 does not listen yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(master, timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def gather():
    """Rank 0: receive a message from every rank, then send the list to all."""
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
    """The other ranks: send a message to rank 0, then receive the answer."""
    with connect() as connection, connection.makefile("rw") as file:
        file.write(json.dumps(self) + "\n")
        file.flush()
        return json.loads(file.readline())


met = gather() if rank == 0 else join()
assert [other["rank"] for other in met] == list(range(world_size)), met
print(f"rank {rank} of {world_size} met " + " ".join(f"{other['rank']}={other['devices']}" for other in met), flush=True)
