# SPDX-License-Identifier: Apache-2.0
"""A second implementation of `berth sim place`, written from its description: an oracle for the policy `first`.

Nodes are ordered by name. Every pod goes to the first node with enough room, and there to the first GPUs with enough
room."""
import csv
from collections import Counter
from fractions import Fraction

POINTS = (60, 80, 90, 100, 110, 120, 130)
MASK = 2**64 - 1


class Random:
    """The generator splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit):
        while (drawn := self.next()) < 2**64 % limit:
            pass
        return drawn % limit

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            other = self.below(i + 1)
            items[i], items[other] = items[other], items[i]


class Node:
    def __init__(self, row):
        self.cpus = int(row["cpu_milli"])
        self.memory = int(row["memory_mib"])
        self.left = [1000] * int(row["gpu"])
        self.model = row["model"]

    def room(self, pod):
        """Returns the GPUs that the pod would get, or None if it does not fit."""
        cpus, memory, count, part, models = pod
        if cpus > self.cpus or memory > self.memory:
            return None
        if count and models and self.model not in models.split("|"):
            return None
        fitting = [i for i, left in enumerate(self.left) if left >= part]
        return fitting[:count] if len(fitting) >= count else None

    def take(self, pod, gpus):
        self.cpus -= pod[0]
        self.memory -= pod[1]
        for gpu in gpus:
            self.left[gpu] -= pod[3]

    def unusable(self, kind):
        """Returns how much of the free capacity a pod of the kind (cpus, part, count, models) cannot use."""
        cpus, part, count, models = kind
        fitting = [left for left in self.left if left >= part]
        fits = count and cpus <= self.cpus and len(fitting) >= count and (not models or self.model in models.split("|"))
        return sum(self.left) - (sum(fitting) if fits else 0)


def read_pods(path):
    with open(path, newline="") as file:
        return [
            (
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                int(row["num_gpu"]),
                int(row["gpu_milli"]),
                row.get("gpu_spec", "") if int(row["num_gpu"]) else "",
            )
            for row in csv.DictReader(file)
        ]


def usual(pods):
    """Returns the most frequent kinds that cover 95 % of the pods, with their numbers. Memory does not count."""
    numbers = Counter((cpus, part, count, models) for cpus, _, count, part, models in pods)
    kinds = []
    for kind in sorted(numbers, key=lambda kind: (numbers[kind], kind), reverse=True):
        if sum(numbers[kind] for kind in kinds) * 100 >= 95 * len(pods):
            break
        kinds.append(kind)
    return {kind: numbers[kind] for kind in kinds}


def rounded(value):
    """Rounds to four decimal places, halves upward."""
    return int(value * 10000 + Fraction(1, 2)) / 10000


def place(nodes_path, pods_path, seed, tune=Fraction(13, 10)):
    """Returns the values of the document, except for times."""
    with open(nodes_path, newline="") as file:
        nodes = [Node(row) for row in sorted(csv.DictReader(file), key=lambda row: row["sn"])]
    pods = read_pods(pods_path)
    kinds = usual(pods)
    capacity = sum(1000 * len(node.left) for node in nodes)
    random = Random(seed)
    queue = list(pods)
    random.shuffle(queue)
    arrived = allocated = failed = decisions = 0
    samples = {}
    while arrived < tune * capacity:
        if decisions == len(queue):
            queue.append(pods[random.below(len(pods))])
        pod = queue[decisions]
        decisions += 1
        arrived += pod[2] * pod[3]
        for node in nodes:
            if (gpus := node.room(pod)) is not None:
                node.take(pod, gpus)
                allocated += pod[2] * pod[3]
                break
        else:
            failed += 1
        percent = int(Fraction(100 * arrived, capacity) + Fraction(1, 2))
        if percent in POINTS:
            free = sum(Fraction(node.unusable(kind) * kinds[kind]) for node in nodes for kind in kinds)
            samples.setdefault(percent, []).append((allocated, free / sum(kinds.values())))

    def mean_at(point, which):
        if point not in samples:
            return None
        total = sum(Fraction(sample[which]) for sample in samples[point])
        return rounded(100 * total / len(samples[point]) / capacity)

    def mean(which):
        return {str(point): mean_at(point, which) for point in POINTS}

    return {"allocated": mean(0), "frag": mean(1), "failed": failed, "decisions": decisions}
