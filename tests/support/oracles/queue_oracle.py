# SPDX-License-Identifier: Apache-2.0
"""A second implementation of `berth sim queue`: computes how long jobs wait by counting the free GPUs of each node.

It has neither engine nor devices. Times are whole seconds. Jobs go to the first node with enough room.
"""
import heapq
import math


class Cluster:
    def __init__(self, nodes, size):
        self.size = size
        self.free = [size] * nodes

    def parts(self, gpus):
        """Returns how many nodes a job takes, and how many GPUs on each."""
        replicas = math.ceil(gpus / self.size)
        while gpus % replicas:
            replicas += 1
        return replicas, gpus // replicas

    def place(self, gpus, free, rather_not=None):
        """Returns the parts of a job on nodes with these free GPUs, or None. Prefers nodes where the job takes the
        fewest GPUs of `rather_not`."""
        replicas, part = self.parts(gpus)
        found = []
        free = list(free)
        for _ in range(replicas):
            able = [node for node, there in enumerate(free) if there >= part]
            if not able:
                return None
            kept = {node: 0 if rather_not is None else max(0, part - (free[node] - rather_not[node])) for node in able}
            node = min(able, key=lambda one: (kept[one], one))
            free[node] -= part
            found.append((node, part))
        return found


class Replay:
    """A replay of a trace; `jobs` are (arrival, duration, gpus) in the order of the trace."""

    def __init__(self, jobs, nodes, size, order, factor):
        self.cluster = Cluster(nodes, size)
        self.order = order
        self.factor = factor
        self.jobs = sorted(enumerate(jobs), key=lambda one: (one[1][0], one[0]))
        self.waits = [0] * len(jobs)
        self.waiting = []
        self.running = []
        self.now = 0

    def start(self, job, parts):
        number, (arrival, duration, _) = job
        for node, part in parts:
            self.cluster.free[node] -= part
        self.waits[number] = self.now - arrival
        heapq.heappush(self.running, (self.now + duration, self.now + duration * self.factor, number, parts))
        self.waiting.remove(job)

    def start_any(self):
        """Starts every waiting job that fits."""
        key = (lambda job: (job[1][1], job[1][0], job[0])) if self.order == "sjf" else (lambda job: 0)
        for job in sorted(self.waiting, key=key):
            parts = self.cluster.place(job[1][2], self.cluster.free)
            if parts:
                self.start(job, parts)

    def reservation(self, gpus):
        """Returns the start of the reservation, and the GPUs of each node that it leaves free."""
        free = list(self.cluster.free)
        by_limit = sorted(self.running, key=lambda lease: lease[1])
        for place, (_, limit, _, parts) in enumerate(by_limit):
            for node, part in parts:
                free[node] += part
            if place + 1 < len(by_limit) and by_limit[place + 1][1] == limit:
                continue
            reserved = self.cluster.place(gpus, free, self.cluster.free)
            if reserved:
                open_parts = list(self.cluster.free)
                then = list(free)
                for node, part in reserved:
                    then[node] -= part
                return limit, [min(now, later) for now, later in zip(open_parts, then)]
        raise AssertionError("no job ends")

    def pass_one(self):
        """Starts the first job that may start, and returns whether there is one."""
        first = self.waiting[0]
        parts = self.cluster.place(first[1][2], self.cluster.free)
        if parts:
            self.start(first, parts)
            return True
        if self.order == "fifo":
            return False
        begin, beside = self.reservation(first[1][2])
        for job in self.waiting[1:]:
            ends = self.now + job[1][1] * self.factor
            parts = self.cluster.place(job[1][2], self.cluster.free if ends <= begin else beside)
            if parts:
                self.start(job, parts)
                return True
        return False

    def serve(self):
        if self.order in ("skip", "sjf"):
            self.start_any()
            return
        while self.waiting and self.pass_one():
            pass

    def run(self):
        jobs = list(self.jobs)
        while jobs or self.running:
            times = [jobs[0][1][0]] if jobs else []
            times += [self.running[0][0]] if self.running else []
            self.now = min(times)
            while self.running and self.running[0][0] == self.now:
                for node, part in heapq.heappop(self.running)[3]:
                    self.cluster.free[node] += part
            if self.waiting and self.order in ("fifo", "easy"):
                self.serve()
            while jobs and jobs[0][1][0] == self.now:
                self.waiting.append(jobs.pop(0))
                if self.order in ("fifo", "easy"):
                    self.serve()
            self.serve()
        return self.waits
