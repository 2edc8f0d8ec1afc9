# SPDX-License-Identifier: Apache-2.0
"""A hostile client that knows the grammar of the protocol (docs/PROTOCOL.md).

It makes valid messages, breaks some of them, and sends them over connections that come and go, that do not read, and
that pass descriptors. Everything is chosen by a seed; what the daemon answers, and when, is not.
"""
import array
import contextlib
import mmap
import os
import random
import resource
import select
import socket
import struct
import time
import traceback
from pathlib import Path

import wire_format as grammar

CONNECTIONS = 60
UNANSWERED = 30  # requests of a connection that reads; some are never answered
MOST = grammar.MESSAGE_MOST
NUMBERS = [0, 1, 2, 3, 7, 8, 64, 255, 256, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32]
NUMBERS += [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
TEXTS = [b"", b"x", b"A100", b"nvidia0", b"first", b"spread", b"/etc/passwd", b"../..", b"a" * 255]
TEXTS += [b"\x1b[2J", b"\xff\xfe", b"%s%n", "\u202e".encode(), b"\n\r\t"]
LONG_TEXTS = [b"b" * 256, b"c" * 1023, b"c" * 1024, b"c" * 1025, b"d" * 4096, b"e" * 60000]
MASKS = [b"CUDA_VISIBLE_DEVICES=0,1", b"ROCR_VISIBLE_DEVICES=-1", b"ZE_AFFINITY_MASK=0.1", b"="]
SECOND = 10**9
# The fields of each type.
FIELDS = {
    "HELLO": (),
    "CLAIM": "token_high token_low request hold parent masks command inventory resume pid started present".split(),
    "RELEASE": ("id", "exit_code"),
    "CANCEL": ("id",),
    "STOP": ("id",),
    "EXTEND": ("id", "duration"),
    "EXPLAIN": ("id",),
    "WATCH": ("id",),
    "TEST": ("request", "parent", "masks", "inventory"),
    "LOOK": ("section", "after", "sections"),
    "DRAIN": ("device_ids", "text"),
    "UNDRAIN": ("device_ids",),
    "FOLLOW": ("epoch", "after", "id", "kinds", "duration"),
}
WEIGHTS = {"CLAIM": 10, "LOOK": 3, "FOLLOW": 3, "RELEASE": 3, "STOP": 2, "EXTEND": 2, "TEST": 2, "WATCH": 2}
# Fields of a request that can be granted.
HARMLESS = "gpus_min gpus_max wait time nonblock name affinity opportunistic priority".split()
HARMLESS += ["wanted", "avoided", "sharing", "share"]
# Small values that make a request likely to be granted or to wait.
USUAL = {
    "gpus_min": (0, 1, 1, 2, 3),
    "gpus_max": (1, 1, 2, 4),
    "replicas": (1, 1, 2, 3),
    "sharing": (0, 0, 1, 2),
    "share": (250000, 500000, 1000000),
    "vendor_rule": (0, 0, 1, 2),
    "scheduling": (0, 1, 2, 3),
    "priority": (0, 1, 2, 3),
    "wait": (0, SECOND // 100, SECOND),
    "time": (SECOND // 100, SECOND // 10, SECOND),
    "hold": (0, 0, 0, 0, 0, 0, 0, 1, 2),
    "duration": (0, SECOND // 100, SECOND),
    "section": (0, 1, 2, 3),
    "kinds": (1, 4, 8, 15),
}


class Generator:
    """Makes packets; `known` has the ids, tokens and epochs of the daemon's answers."""

    def __init__(self, chance):
        self.chance = chance
        self.known = [1, 2, 3]
        self.leases = [1]
        self.tokens = [(1, 1)]
        self.wildness = 1.0
        self.started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])

    def is_wild(self):
        """Decides whether the next value may be out of its range."""
        return self.chance.random() < 0.02 + 0.2 * self.wildness

    def number(self, name):
        if name == "pid":
            return self.chance.choice((0, 1, os.getpid(), os.getpid(), self.chance.randrange(1 << 22)))
        if name == "started":
            return self.chance.choice((0, 1, self.started, self.started))
        if self.is_wild():
            return self.chance.choice([*NUMBERS, self.chance.getrandbits(self.chance.choice([8, 16, 32, 63, 64]))])
        if name in USUAL:
            return self.chance.choice(USUAL[name])
        if name in ("id", "parent"):
            return self.chance.choice(self.chance.choice((self.leases, self.known)))
        if name in ("epoch", "after"):
            return self.chance.choice(self.known)
        return self.chance.choice((0, 1))

    def text(self):
        if self.is_wild():
            noise = self.chance.randbytes(self.chance.randrange(300))
            return self.chance.choice((*LONG_TEXTS, noise, noise.replace(b"\0", b"x")))
        return self.chance.choice(TEXTS)

    def device(self):
        vendor, index, mig = 0, self.chance.randrange(6), grammar.NO_MIG
        if self.is_wild():
            vendor, index = self.chance.choice((0, 1, 4, 5, 255)), self.chance.choice(NUMBERS) & 0xFFFFFFFF
            mig = self.chance.choice((mig, index))
        return struct.pack("<BII", vendor, index, mig)

    def value(self, name, kind):
        """Returns the bytes of a valid value."""
        write = kind[0]
        if name == "request":
            names = list(grammar.REQUEST) if self.chance.random() < 0.3 else HARMLESS
            return self.fields(grammar.REQUEST, self.chance.sample(names, self.chance.randrange(5)))
        if write is grammar.write_number:
            return grammar.write_number(self.number(name))
        if write is grammar.write_ids:
            return b"".join(self.device() for _ in range(self.chance.choice((0, 1, 1, 2, 5, 100))))
        if write is grammar.write_strings:
            return grammar.write_strings(self.chance.choices(MASKS + TEXTS, k=self.chance.randrange(5)))
        return self.text()

    def fields(self, table, names):
        parts = [(table[name][0], self.value(name, table[name][1])) for name in names]
        return self.join(parts)

    def join(self, parts):
        if self.chance.random() < 0.2 * self.wildness:
            parts = self.mutate(parts)
        return b"".join(grammar.field(tag, value) for tag, value in parts)

    def mutate(self, parts):
        """Breaks a list of fields: drops, repeats, swaps, renames, resizes, nests and replaces them."""
        parts = list(parts)
        for _ in range(self.chance.randrange(1, 4)):
            at = self.chance.randrange(len(parts)) if parts else 0
            tag, value = parts[at] if parts else (self.chance.randrange(64), b"")
            what = self.chance.randrange(9)
            if what == 0 and parts:
                del parts[at]
            elif what == 1:
                parts.insert(at, (tag, value))
            elif what == 2:
                self.chance.shuffle(parts)
            elif what == 3:
                tag = self.chance.choice((0, tag ^ 1, tag + 1, 0x7FFF, 0x8000, 0xFFFF, self.chance.randrange(64)))
                parts[at : at + 1] = [(tag & 0xFFFF, value)]
            elif what == 4:
                parts[at : at + 1] = [(tag, value[: self.chance.randrange(len(value) + 1)])]
            elif what == 5:
                parts[at : at + 1] = [(tag, value + self.chance.randbytes(self.chance.choice((1, 8, 9, 1000))))]
            elif what == 6:
                parts[at : at + 1] = [(tag, grammar.field(tag, value) * self.chance.choice((1, 2, 200)))]
            elif what == 7:
                parts[at : at + 1] = [(tag, self.chance.randbytes(len(value)))]
            else:
                name = self.chance.choice(list(grammar.MESSAGE))
                parts.insert(at, (grammar.MESSAGE[name][0], self.value(name, grammar.MESSAGE[name][1])))
        return parts

    def packet(self, connection):
        """Returns the next packet for a connection."""
        self.wildness = connection.wildness
        if connection.leases and self.chance.random() < 0.2:
            lease, code = connection.leases.pop(), self.number("exit_code")
            return grammar.encode("RELEASE", connection.number, id=lease, exit_code=code)
        names = list(FIELDS)
        [kind] = self.chance.choices(names, [WEIGHTS.get(name, 1) for name in names])
        fields = [name for name in FIELDS[kind] if self.chance.random() < 0.7]
        if kind == "CLAIM":
            body = self.claim(fields)
        else:
            body = self.fields(grammar.MESSAGE, fields)
        data = grammar.packet(kind, connection.number, body[: MOST + 100])
        return self.damage(data) if self.chance.random() < 0.1 * self.wildness else data

    def claim(self, fields):
        rare = "token_high token_low resume parent pid started present inventory".split()
        fields = [name for name in fields if name not in (*rare, "request")]
        fields += [name for name in rare[2:] if self.chance.random() < 0.05]
        if self.chance.random() < 0.97:
            fields.append("request")
        token = self.chance.choice(self.tokens)
        if self.chance.random() < 0.9:
            token = self.chance.getrandbits(64) | 1, self.chance.getrandbits(64)
            self.tokens = [*self.tokens[-50:], token]
        parts = [(3, grammar.write_number(token[0])), (4, grammar.write_number(token[1]))]
        parts += [(grammar.MESSAGE[name][0], self.value(name, grammar.MESSAGE[name][1])) for name in fields]
        return self.join(parts)

    def damage(self, data):
        """Breaks the header or the length of a packet."""
        what = self.chance.randrange(7)
        if what == 0:
            return data[: self.chance.randrange(len(data) + 1)]
        if what == 1:
            return data + self.chance.randbytes(self.chance.choice((1, 5, 6, 100)))
        if what == 2:
            return self.chance.randbytes(self.chance.choice((1, 15, 16, 17, 300)))
        if what == 3:
            return bytes(self.chance.choice((MOST - 16, MOST, MOST + 1)))
        broken = bytearray(data)
        for _ in range(self.chance.choice((1, 1, 4))):
            at = self.chance.randrange(16 if what < 6 else len(data))
            broken[at] = self.chance.choice((0, 1, 255, self.chance.randrange(256)))
        return bytes(broken)

    def learn(self, connection, data):
        """Keeps what later messages can refer to."""
        with contextlib.suppress(grammar.WireError, ValueError):
            message = grammar.decode(data)
            if message["type"] == "GRANTED":
                connection.leases.append(message["id"])
                self.leases = [*self.leases[-5:], message["id"]]
            for lease in message.get("leases", ()):
                if lease.get("uid") == os.getuid():
                    self.leases = [*self.leases[-5:], lease["id"]]
            for name in ("id", "epoch", "after", "number"):
                if message.get(name):
                    self.known = [*self.known[-100:], message[name]]


class Connection:
    def __init__(self, path, chance):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self.socket.setblocking(False)
        self.reads = chance.random() < 0.97
        # Broken messages end a connection, so most connections send few of them.
        self.wildness = chance.choice((0.0, 0.05, 0.05, 1.0))
        self.number = self.unanswered = 0
        self.leases = []
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def send(self, data, descriptors=()):
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.socket.sendmsg([data], extra, socket.MSG_NOSIGNAL)


class Fuzzer:
    def __init__(self, path, seed, counts):
        self.path = path
        self.chance = random.Random(seed)
        self.generator = Generator(self.chance)
        self.connections = []
        self.counts = counts
        read, write = os.pipe()
        self.descriptors = [read, write, os.open("/dev/null", os.O_RDONLY)]

    def step(self):
        """Does one thing with one connection."""
        if len(self.connections) < CONNECTIONS and self.chance.random() < 0.2:
            with contextlib.suppress(OSError):
                self.connections.append(Connection(self.path, self.chance))
                self.counts.add("connected")
        if not self.connections:
            time.sleep(0.001)  # the daemon is busy
            return
        connection = self.chance.choice(self.connections)
        what = self.chance.random()
        try:
            if what < 0.01 or connection.unanswered >= UNANSWERED and what < 0.1:
                self.close(connection)
            elif what < 0.012:
                connection.socket.shutdown(self.chance.choice((socket.SHUT_RD, socket.SHUT_WR)))
            elif not connection.reads or connection.unanswered < UNANSWERED:
                self.send(connection)
            if connection.reads:
                self.receive(connection)
        except BlockingIOError:
            # The daemon slows this user down, or waits for this connection to read.
            if not connection.reads:
                self.close(connection)
            time.sleep(0.001)
        except OSError:
            self.close(connection)

    def send(self, connection):
        connection.number += self.chance.random() < 0.95
        descriptors = ()
        if self.chance.random() < 0.02:
            descriptors = self.chance.choices(self.descriptors, k=self.chance.choice((1, 3, 253)))
        connection.send(self.generator.packet(connection), descriptors)
        connection.unanswered += 1
        self.counts.add("sent")

    def receive(self, connection):
        for _ in range(8):
            try:
                data = connection.socket.recv(MOST)
            except BlockingIOError:
                return
            if not data:
                self.close(connection)
                return
            self.counts.add(data[1])
            if len(data) < 4000 or self.chance.random() < 0.01:
                self.generator.learn(connection, data)
            connection.unanswered = max(0, connection.unanswered - 1)

    def close(self, connection):
        if connection in self.connections:
            self.connections.remove(connection)
            connection.socket.close()
            self.counts.add("closed")


class Counts:
    """Counters that a process shares with its children. The first 256 count answers by their type."""

    NAMES = ("sent", "connected", "closed", "killed")

    def __init__(self):
        self.memory = mmap.mmap(-1, 8 * (256 + len(self.NAMES)))
        self.numbers = memoryview(self.memory).cast("Q")

    def add(self, name):
        self.numbers[name if isinstance(name, int) else 256 + self.NAMES.index(name)] += 1

    def read(self):
        answers = {name: self.numbers[kind] for kind, name in grammar.TYPE_NAMES.items() if self.numbers[kind]}
        return {**{name: self.numbers[256 + i] for i, name in enumerate(self.NAMES)}, "answers": answers}


def work(path, seed, end, counts):
    fuzzer = Fuzzer(path, seed, counts)
    while not select.select([end], [], [], 0)[0]:
        for _ in range(50):
            fuzzer.step()


def run(path, seed, end):
    """Fuzzes until the descriptor `end` is readable. Returns the counts. The daemon ends processes that hold a lease
    too long, so another process takes over then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    counts = Counts()
    while not select.select([end], [], [], 0)[0]:
        child = os.fork()
        if child == 0:
            try:
                work(path, f"{seed}-{counts.read()['killed']}", end, counts)
                os._exit(0)
            except BaseException:  # the parent reports it
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            break
        counts.add("killed")
    return counts.read()
