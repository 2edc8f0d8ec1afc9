# SPDX-License-Identifier: Apache-2.0
"""Made-up spec files: valid, nearly valid and invalid ones, whose values are in many notations."""
import json

# Values that any field may have.
ODD = (
    "null", "~", "", "Null", "nUlL", "[]", "{}", "[null]", "''", '""', "yes", "no", "on", "True", "FALSE", "tRue",
    "'true'", "-1", "+1", "0", "00", "1", "1.0", "1.", ".5", "0.5", "1e0", "1e3", "0x10", "0o17", "017", "1_000", ".inf",
    "-.inf", ".nan", "99999999999999999999", "'1'", '"1\\n"', '"\\0"', '"a\\0b"', "é", "[1, 2]", "{a: b}", "2026-01-01",
    "1:30", "all", "any", "x", "- x", '"\\u00e9"', "|", "18446744073709551616", "'x'", "<<", "=", "nvidia0", "/", "8GiB",
)  # fmt: skip
LONG = ("x" * 254, "x" * 255, "x" * 256, "é" * 127, "é" * 128, "é" * 255, "é" * 256, f"'{'x' * 256}'", "1" * 255, "1" * 256)
TEXTS = ("finetune", "'a b'", '"tab\\t"', "5", "true", "0x10", "1e3", "~x", "null?", "007", '"null"', "0.50", *LONG)
BOOLEANS = ("true", "false", "True", "TRUE", "False", "FALSE")
SIZES = (
    "0", "1", "8GiB", "8G", "8192MiB", "8GB", "8 GiB", "'8 gib'", "1.5T", "1.125TiB", "1.1255TiB", "999T", "1000T", "999999G",
    "1000000G", "999999999999999", "1000000000000000", "0GiB", "0.0G", "0.000G", "0.001K", "0.0001K", "0.001KB", "1B", "1.5B",
    "1.5", "007", "007G", "0007T", "'007'", "'1'", "'0'", "1P", "1E", "8Gi", "8GiBB", "8  G", "8G ", "'8G '", "' 8G'", '"8G\\n"',
    "8.G", ".5G", "-8G", "+8G", "1e3", "1e3K", "0x10", "8٣G", "1_000", "00.5M", "000000000.5M", "0000000000.5M", "8,5G", "'5b'",
    "5 B", "'5 '", "9.999K", "999999999999K", "1000000000000K", "999999999M", "1000000000M", "999.999T", "kG",
)  # fmt: skip
DURATIONS = (
    "0", "1", "90", "90s", "5m", "4h", "1h30m", "2-00:00:00", "01:30:00", "1:30:00", "1:30", "1:2:3", "1:60:00", "1:00:60",
    "2-24:00:00", "2-23:59:59", "24:00:00", "99999:00:00", "100000:00:00", "9999-0:0:0", "10000-0:0:0", "0:0:0", "0-0:0:0",
    "500ms", "1.5h", "1.5", "0.5s", "0.5555s", "0.001ms", "0.0001ms", "0s", "0h0m0s", "0m1s", "1s1m", "1m1m", "1m30", "1.5h30m",
    "1h1.5m", "2d12h", "9999d", "10000d", "99999h", "100000h", "9999999m", "10000000m", "999999999s", "1000000000s",
    "999999999999ms", "1000000000000ms", "999999999", "1000000000", "007", "'007'", "007s", "'90'", "'90 s'", "90S", '"90s\\n"',
    "1w", "1us", "-5s", "+5s", "1:2:3:4", "1-2-3:4:5", "1:002:3", "5s ", "' 5s'", "1h1h", "1d1h1m1s1ms", "0.000s", "1ms1s",
)  # fmt: skip
IDS = (
    "nvidia0", "nvidia0.1", "amd3", "intel0", "apple0", "dri2", "nvidia", "nvidia00", "nvidia01", "nvidia999999", "nvidia1000000",
    "nvidia0.", "nvidia0.999999", "nvidia0.01", "amd0.1", "NVIDIA0", "nvidia-1", "nvidia0 ", "'nvidia0 '", "0", "GPU-0", '"amd0\\n"',
)  # fmt: skip
ID_LISTS = IDS + (
    "'nvidia0,nvidia1'", "'nvidia0,'", "',nvidia0'", "'nvidia0, nvidia1'", "'nvidia0,amd0,dri1'", "[nvidia0]", "[]", "[[nvidia0]]",
    "[nvidia0, nvidia0]", "[nvidia0, 'nvidia1,nvidia2']", "[nvidia0, null]", "[nvidia0, x]", "['']", "''", "{nvidia0: 1}",
    "'" + ",".join(["nvidia0"] * 512)[:4095] + "'", "'" + ",".join(["nvidia0"] * 512) + "'", "[nvidia0.1, amd2]",
)  # fmt: skip
COUNTS = (
    "1", "2", "4", "8", "all", "'4'", '"all"', "2-4", "'2-4'", "1-1", "4-2", "2-2", "9-10", "10-9", "99-100", "100-99", "0", "0-1",
    "1000000", "1000001", "999999-1000000", "1-1000000", "1-1000001", "1000000-1000000", "1000000-999999", "04", "'04'", "02-4",
    "2-04", "2 - 4", "2-", "-4", "--", "2-4-6", "All", "ALL", "'all '", '"4\\n"', '"2-4\\n"', "4.0", "1.0", "4.5", "1e1", "0x4", "+4",
    "123-124", "124-123", "1239-1240", "21-19", "[4]", "any", "2..4", "2–4", "٣",
)  # fmt: skip
CAPABILITIES = (
    '"8.0"', "'8.6'", "'8'", "'12.0'", "'8.10'", "'999.999'", "'1000.0'", "'8.1234'", "'8.'", "'.8'", "'8.0.0'", "'v8'", "8.0", "8",
    "'008.000'", '"8.0\\n"', "'-8'", "''", "['8.0']",
)  # fmt: skip
SHARES = (
    "0.5", "1", "1.0", "0.25", "0.000001", "0.0000001", "0.1234567", "1.00", "1.0000001", "1.1", "2", "0", "0.0", "0.000", "-0.5",
    "'0.5'", ".5", "0.", "1e-1", "00.5", "+0.5", "0.9999999", "all", ".nan", ".inf", "01", "0x1", "1.", "0.123456789012",
)  # fmt: skip
DIRECTORIES = (
    "/tmp/mps", "/", "tmp", "./tmp", "'/tmp/a b'", "''", "/" + "x" * 71, "/" + "x" * 72, "/" + "é" * 35, "/" + "é" * 36,
    "/" + "é" * 71, '"/a\\0b"', '"/a\\n"', "[/tmp]", "5",
)  # fmt: skip
COMMANDS = (
    "[python, train.py]", "train", "[train]", "[]", "['']", "''", "['', x]", "[x, '']", "[sleep, 5]", "[5]", "5", "true", "[true, 1.5]",
    "[x, null]", "[null]", "[x, [y]]", "[x, {}]", "{}", "'python train.py'", '["a\\0"]', '[x, "\\0"]', "[x, ~]", "[x, '~']", "é",
)  # fmt: skip
PORTS = ("29500", "1", "65535", "0", "65536", "-1", "'29500'", "029500", "29500.0", "2.95e4", "0x733c", "http", "29500.5", "1_000")
INTERFACES = ("eth0", "ib0,ib1", "x" * 15, "x" * 16, "é" * 7, "é" * 8, "é" * 15, "5", "''", '"eth0\\n"', "9" * 15, "9" * 16, "-" + "9" * 14, "-" + "9" * 15)

# Values that are nearly always valid for their field, so that whole files are valid often enough.
RIGHT = {
    "name": ("finetune", "5", "'a b'"),
    "replicas": ("1", "2", "16"),
    "priority": ("low", "normal", "high", "'low'"),
    "opportunistic": BOOLEANS,
    "time": ("8h", "90", "1h30m", "2-00:00:00", "'90s'"),
    "wait": ("0", "30m", "1.5h", "0s"),
    "or_cpu": BOOLEANS,
    "uuid": BOOLEANS,
    "pin": BOOLEANS,
    "label": BOOLEANS,
    "command": ("[python, train.py]", "train", "[sleep, 5]"),
    "count": ("1", "4", "all", "2-4", "'1'", "1-1", "8"),
    "vendor": ("nvidia", "amd", "intel", "apple", "any", "dri", "nvidai", "'nvidia'"),
    "model": ("H100", "A100", "4090"),
    "mode": ("native", "vm"),
    "scheduling": ("best-effort", "gang", "spread"),
    "sharing": ("exclusive", "mps", "time-slice", "mps"),
    "share": ("0.5", "0.25", "1"),
    "memory": ("40GiB", "1", "8 GB"),
    "mps_pipe_dir": ("/tmp/mps/pipe",),
    "mps_log_dir": ("/tmp/mps/log",),
    "time_slice_index": ("0", "3"),
    "time_slicing_config_path": ("/etc/x.yaml", "x"),
    "min_free": ("20GiB", "0", "1.5T"),
    "min_memory": ("80GiB", "'80'"),
    "min_cap": ('"8.0"', "'9'"),
    "device": ("nvidia0", "[nvidia0, nvidia1]", "'nvidia0,amd1'"),
    "avoid": ("amd0", "[nvidia0.1]"),
    "policy": ("topology", "first", "anything"),
    "affinity": ("llama", "70"),
    "backend": ("nccl", "gloo", "mpi"),
    "master_port": ("29500", "1", "65535"),
    "interface": ("eth0", "ib0"),
    "rank_mask": ("all", "one"),
}
DOUBTFUL = {
    "name": TEXTS,
    "replicas": ("0", "1000000", "1000001", "'2'", "02", "2.0", "2.5", "0x2", "+2", "-2", "1e1", "all", "1-2"),
    "priority": ("High", "urgent", "'high '", '"low\\n"', "1"),
    "time": DURATIONS,
    "wait": DURATIONS,
    "command": COMMANDS,
    "count": COUNTS,
    "vendor": TEXTS,
    "model": (*TEXTS, "A100|H100", "'|'", "'|A100'", "'A100|'", "A100||H100"),
    "mode": ("Native", "container"),
    "scheduling": ("Gang", "best_effort", "besteffort", "[gang]"),
    "sharing": ("time_slice", "timeslice", "none", "MPS"),
    "share": SHARES,
    "memory": SIZES,
    "mps_pipe_dir": DIRECTORIES,
    "mps_log_dir": DIRECTORIES,
    "time_slice_index": ("4294967295", "4294967296", "00", "-0", "'0'", "0.0"),
    "time_slicing_config_path": ("x" * 4095, "x" * 4096, "''", "5"),
    "min_free": SIZES,
    "min_memory": SIZES,
    "min_cap": CAPABILITIES,
    "device": ID_LISTS,
    "avoid": ID_LISTS,
    "policy": TEXTS,
    "affinity": TEXTS,
    "backend": ("NCCL", "ucc", "[nccl]"),
    "master_port": PORTS,
    "interface": INTERFACES,
    "rank_mask": ("All", "two", "1"),
}
DISTRIBUTED = ("backend", "master_port", "interface", "rank_mask")
TOP = ("name", "replicas", "priority", "opportunistic", "time", "wait", "or_cpu", "uuid", "pin", "label", "command")
GPU = tuple(name for name in RIGHT if name not in DISTRIBUTED + TOP)
BLOCKS = {"distributed": DISTRIBUTED, "gpu": (*GPU, "distributed"), "resources": ("gpu",), "": (*TOP, "gpu", "resources")}
# Fields that other fields require or exclude.
OFTEN = {"count": 0.5, "replicas": 0.4, "sharing": 0.4, "distributed": 0.3, "label": 0.3}
WRONG_KEYS = ("cuont", "Count", "count ", "", "<<", "1", "null", "~", "gpus", "minFree", "min-free", "'count'", "[count]", "? x")


class Author:
    """Writes files; `doubt` is the frequency of doubtful values, from 0 to 1."""

    def __init__(self, seeded, doubt):
        self.seeded = seeded
        self.doubt = doubt

    def chance(self, likely):
        return self.seeded.random() < likely

    def scalar(self, name):
        if not self.chance(self.doubt):
            return self.seeded.choice(RIGHT[name])
        return self.seeded.choice(DOUBTFUL.get(name, ODD) if self.chance(0.7) else ODD)

    def fields(self, names, likely):
        """Returns pairs of a key and a value, which is a text or again pairs."""
        chosen = [name for name in names if self.chance(max(likely, OFTEN.get(name, 0)))]
        self.seeded.shuffle(chosen)
        pairs = [(name, self.block(name) if name in BLOCKS else self.scalar(name)) for name in chosen]
        if self.chance(self.doubt / 4):
            pairs.append((self.seeded.choice(WRONG_KEYS), self.seeded.choice(ODD)))
        if pairs and self.chance(self.doubt / 10):
            pairs.append(self.seeded.choice(pairs))
        return pairs

    def block(self, name):
        if self.chance(self.doubt / 3):
            return self.seeded.choice(ODD)
        return self.fields(BLOCKS[name], {"gpu": 0.2, "resources": 0.9, "distributed": 0.3}[name])

    def pairs(self):
        """Returns the pairs of a whole file. It nearly always has `gpu` in exactly one place."""
        pairs = self.fields(TOP, 0.2)
        place = self.seeded.random()
        if place < 0.75:
            pairs.append(("gpu", self.block("gpu")))
        if 0.7 < place < 0.98:
            pairs.append(("resources", self.block("resources")))
        self.seeded.shuffle(pairs)
        return pairs


def block_style(pairs, indent=""):
    if not pairs:
        return indent + "{}\n"
    lines = []
    for key, value in pairs:
        if isinstance(value, str):
            lines.append(f"{indent}{key}: {value}\n")
        elif value:
            lines.append(f"{indent}{key}:\n{block_style(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{key}: {{}}\n")
    return "".join(lines)


def flow_style(pairs):
    return "{" + ", ".join(f"{key}: {value if isinstance(value, str) else flow_style(value)}" for key, value in pairs) + "}"


def write(seeded):
    """Returns the text of a file."""
    author = Author(seeded, seeded.choice((0, 0, 0.05, 0.1, 0.3)))
    pairs = author.pairs()
    return block_style(pairs) if seeded.random() < 0.8 else flow_style(pairs) + "\n"


def mutate(text, seeded):
    """Returns the text of a file with one random change."""
    lines = text.splitlines(keepends=True) or [""]
    at = seeded.randrange(len(lines))
    way = seeded.randrange(6)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(seeded.randrange(len(lines) + 1), lines[at])
    elif way == 2 and ":" in lines[at]:
        lines[at] = lines[at].split(":")[0] + ": " + seeded.choice(ODD) + "\n"
    elif way == 3 and ":" in lines[at]:
        name = lines[at].split(":")[0].strip()
        lines[at] = lines[at].split(":")[0] + ": " + seeded.choice(DOUBTFUL.get(name, ODD)) + "\n"
    elif way == 4 and len(lines[at]) > 1:
        place = seeded.randrange(len(lines[at]) - 1)
        lines[at] = lines[at][:place] + lines[at][place + 1 :]
    else:
        place = seeded.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + seeded.choice("0159-.:,' xé~") + lines[at][place:]
    return "".join(lines)


JSON_VALUES = (
    None, True, False, 0, 1, 4, -1, 1.5, 0.5, "", "1", "4", "all", "2-4", "4-2", "8GiB", "1h", "nvidia0", [], {}, ["a"], [1, "b"], [None],
    "mps", "time-slice", "gang", "best-effort", "nccl", "/tmp", "8.0", {"count": 1}, 65536, 10**7, "\n", "a\nb", "é", "~", "null", "true",
)  # fmt: skip


def write_json(seeded):
    """Returns the text of a file in JSON, with any values."""

    def block(name, likely):
        return {key: value(key, likely) for key in BLOCKS[name] if seeded.random() < likely}

    def value(key, likely):
        if key in BLOCKS and seeded.random() < 0.95:
            return block(key, likely)
        return seeded.choice(JSON_VALUES)

    document = block("", seeded.choice((0.05, 0.1)))
    if seeded.random() < 0.8:
        document["gpu"] = block("gpu", seeded.choice((0, 0.05, 0.1)))
    return json.dumps(document, indent=seeded.choice((None, 2)), ensure_ascii=False)
