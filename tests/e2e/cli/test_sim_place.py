# SPDX-License-Identifier: Apache-2.0
"""berth sim place: the protocol, computed by hand and by an oracle, and its output."""
import json
import re
from fractions import Fraction
from xml.etree import ElementTree

import placement_oracle
import pytest
from policies import BASELINES

SVG = "{http://www.w3.org/2000/svg}"
POINTS = ["60", "80", "90", "100", "110", "120", "130"]
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

# Three nodes with five GPUs; node c has too few CPUs for any of the pods.
THREE = NODES + "a,8000,16384,2,V100\nb,8000,16384,2,T4\nc,2000,16384,1,T4\n"
FIVE = PODS + "".join(f"p{i},3000,1024,1,1000,\n" for i in range(5))


def sim(sandbox, *args, **options):
    return sandbox.run(["berth", "sim", "place", *args], **options)


def write(sandbox, nodes, pods):
    (sandbox.directory / "nodes.csv").write_text(nodes)
    (sandbox.directory / "pods.csv").write_text(pods)
    return ["--nodes", "nodes.csv", "--pods", "pods.csv", "--policy", "first"]


@pytest.fixture
def small(source_root):
    data = source_root / "tests/data/openb-small"
    return ["--nodes", data / "nodes.csv", "--pods", data / "pods.csv", "--policy", "first"]


def without_times(text):
    """Return the document without the values that differ from run to run."""
    return re.sub(r'"(p50|p99|max|seconds)": [\d.]+', r'"\1": T', text)


def document(sandbox, *args):
    done = sim(sandbox, *args, "--json", timeout=60)
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def values(**known):
    return {point: known.get(f"at{point}") for point in POINTS}


def check(found, allocated, frag, failed, decisions):
    assert found["allocated"] == allocated
    assert found["frag"] == frag
    assert (found["failed"], found["decisions"]) == (failed, decisions)


def test_whole_gpus_by_hand(sandbox):
    """Each pod is 20 % of the GPUs. Node a takes two, node b two. The fifth GPU has too few CPUs
    beside it, so no pod can ever use it. Pods five, six and seven are dropped."""
    found = document(sandbox, *write(sandbox, THREE, FIVE), "--tune", "1.4")
    check(
        found,
        values(at60=60, at80=80, at100=80, at120=80),
        values(at60=20, at80=20, at100=20, at120=20),
        failed=3,
        decisions=7,
    )


def test_shares_by_hand(sandbox):
    """Two pods of 40 % fit on the one GPU. The remaining 20 % are too small for a third."""
    options = write(sandbox, NODES + "a,8000,8192,1,T4\n", PODS + "p,100,100,1,400,\n")
    found = document(sandbox, *options, "--tune", "1.2")
    check(found, values(at80=80, at120=80), values(at80=20, at120=20), failed=1, decisions=3)


def test_models_by_hand(sandbox):
    """Only one of the two GPUs has the model that all pods want; 'T4|A10' means either model."""
    nodes = NODES + "a,8000,8192,1,V100\nb,8000,8192,1,T4\n"
    found = document(sandbox, *write(sandbox, nodes, PODS + "p,100,100,1,1000,T4|A10\n"), "--tune", "1")
    check(found, values(at100=50), values(at100=50), failed=1, decisions=2)


def test_host_memory_by_hand(sandbox):
    """Two GPUs and memory for one pod. The measure of fragmentation ignores memory."""
    options = write(sandbox, NODES + "a,8000,1500,2,T4\n", PODS + "p,100,1000,1,1000,\n")
    found = document(sandbox, *options, "--tune", "1")
    check(found, values(at100=50), values(at100=0), failed=1, decisions=2)


def test_pods_without_gpus_by_hand(sandbox):
    """The pod that comes first, with or without a GPU, takes the CPUs that the other pod needs."""
    options = write(sandbox, NODES + "a,4000,8192,1,T4\n", PODS + "c,3000,100,0,0,\ng,3000,100,1,1000,\n")
    outcomes = set()
    for seed in range(6):
        found = document(sandbox, *options, "--tune", "1", "--seed", str(seed))
        outcomes.add((found["decisions"], found["failed"], found["allocated"]["100"], found["frag"]["100"]))
    # If the pod with the GPU comes first, the run ends. If it comes later, it is dropped: second, or
    # after more draws of the other pod. Half of the typical pods request no GPU and cannot use a
    # free one.
    assert (1, 0, 100, 0) in outcomes
    assert (2, 1, 0, 100) in outcomes
    assert all(allocated in (0, 100) for _, _, allocated, _ in outcomes)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**64 - 1])
def test_oracle(sandbox, small, seed):
    """The numbers equal those of a second implementation, to the last digit."""
    found = document(sandbox, *small, "--seed", str(seed))
    wanted = placement_oracle.place(small[1], small[3], seed)
    assert {key: found[key] for key in wanted} == wanted


def test_oracle_with_another_tune(sandbox, small):
    found = document(sandbox, *small, "--seed", "7", "--tune", "0.85")
    wanted = placement_oracle.place(small[1], small[3], 7, Fraction(85, 100))
    assert {key: found[key] for key in wanted} == wanted
    assert found["allocated"]["90"] is None and found["allocated"]["80"] is not None


def test_document(sandbox, small):
    found = document(sandbox, *small)
    keys = ["schema", "trace", "policy", "seed", "allocated", "frag", "failed", "decisions", "decision_us", "seconds"]
    assert list(found) == keys
    assert [found[key] for key in keys[:4]] == ["berth.sim-place/1", "pods", "first", 42]
    assert list(found["allocated"]) == list(found["frag"]) == POINTS
    assert list(found["decision_us"]) == ["p50", "p99", "max"]
    assert 0 < found["decision_us"]["p50"] <= found["decision_us"]["p99"] <= found["decision_us"]["max"]
    assert found["seconds"] * 1e6 >= found["decision_us"]["max"]


def test_same_seed_same_bytes(sandbox, small):
    one, again, other = (
        without_times(sim(sandbox, *small, "--json", "--seed", seed).stdout) for seed in ("5", "5", "6")
    )
    assert one == again
    assert one.replace('"seed": 5', '"seed": 6') != other


def test_range_of_seeds(sandbox, small):
    found = document(sandbox, *small, "--seeds", "3-5")
    assert list(found) == ["schema", "runs", "mean"]
    assert [run["seed"] for run in found["runs"]] == [3, 4, 5]
    for run in found["runs"]:
        alone = document(sandbox, *small, "--seed", str(run["seed"]))
        assert alone.pop("schema") == found["schema"]
        for kind in (alone, run):
            del kind["decision_us"], kind["seconds"]
        assert alone == run
    for member in ("allocated", "frag"):
        for point in POINTS:
            known = [run[member][point] for run in found["runs"] if run[member][point] is not None]
            mean = found["mean"][member][point]
            assert mean is None if not known else abs(mean - sum(known) / len(known)) < 1e-4
    assert found["mean"]["allocated"]["130"] is not None


def test_range_of_one_seed(sandbox, small):
    found = document(sandbox, *small, "--seeds", "3-3")
    assert [run["seed"] for run in found["runs"]] == [3]
    assert found["mean"]["allocated"] == found["runs"][0]["allocated"]


def test_several_policies(sandbox, small):
    options = [*small, "--policy", "best-available,weighted", "--seeds", "1-2"]
    found = document(sandbox, *options)
    assert list(found) == ["schema", "policies"]
    assert [entry["policy"] for entry in found["policies"]] == ["first", "best-available", "weighted"]
    for entry in found["policies"]:
        assert list(entry) == ["policy", "runs", "mean"]
        assert {run["policy"] for run in entry["runs"]} == {entry["policy"]}
    alone = document(sandbox, *small, "--seeds", "1-2")
    assert found["policies"][0]["mean"] == alone["mean"]


def test_baselines(sandbox, small, source_root):
    """The policies of the openb study, which only the simulator has."""
    found = document(sandbox, *small, "--policy", ",".join(BASELINES))
    assert [entry["policy"] for entry in found["policies"]] == ["first", *BASELINES]
    assert len({json.dumps(entry["mean"]["allocated"]) for entry in found["policies"]}) > 3
    manual = (source_root / "man/berth-sim.1.scd").read_text()
    assert all(f"*{name}*" in manual for name in BASELINES)


def test_order_of_ties(sandbox, small):
    """Ties are broken by name, regardless of the order in the file, unless the seed draws the
    order."""
    lines = small[1].read_text().splitlines(keepends=True)
    (sandbox.directory / "turned.csv").write_text("".join([lines[0], *reversed(lines[1:])]))
    turned = ["--nodes", "turned.csv", *small[2:]]
    by_name = without_times(sim(sandbox, *small, "--json").stdout)
    assert without_times(sim(sandbox, *turned, "--json").stdout) == by_name
    drawn = without_times(sim(sandbox, *small, "--json", "--ties", "seed").stdout)
    assert drawn != by_name
    assert without_times(sim(sandbox, *turned, "--json", "--ties", "seed").stdout) == drawn
    assert without_times(sim(sandbox, *small, "--json", "--ties", "name").stdout) == by_name


def test_columns_go_by_name(sandbox):
    """The order of columns, additional columns, line ends and a byte order mark do not matter."""
    plain = without_times(sim(sandbox, *write(sandbox, THREE, FIVE), "--json").stdout)
    nodes = "\ufeffmodel,gpu,colour,sn,memory_mib,cpu_milli\r\n" + "".join(
        f'{model},{gpus},"red, or so",{name},16384,{cpus}\r\n'
        for name, cpus, gpus, model in [("c", 2000, 1, "T4"), ("b", 8000, 2, "T4"), ("a", 8000, 2, "V100")]
    )
    pods = "gpu_milli,num_gpu,memory_mib,cpu_milli\n" + "1000,1,1024,3000\n" * 5 + "\n"
    assert plain
    assert without_times(sim(sandbox, *write(sandbox, nodes, pods), "--json").stdout) == plain


def test_scale(sandbox):
    """With twice the nodes, twice the pods arrive until they request the same fraction."""
    options = write(sandbox, THREE, FIVE)
    found = document(sandbox, *options, "--scale", "2", "--tune", "1.4")
    check(
        found,
        values(at60=60, at80=80, at90=80, at100=80, at110=80, at120=80, at130=80),
        values(at60=20, at80=20, at90=20, at100=20, at110=20, at120=20, at130=20),
        failed=6,
        decisions=14,
    )
    assert " 6 nodes, 10 GPUs, " in sim(sandbox, *options, "--scale", "2").stdout


def test_table(sandbox):
    done = sim(sandbox, *write(sandbox, THREE, FIVE), "--policy", "weighted", "--seeds", "1-3", "--tune", "1.4")
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "pods: 5 pods, 3 nodes, 5 GPUs, mean of seeds 1 to 3",
        "Allocated GPUs in %, by demand in %:",
        "",
    ]
    # Values that no policy has are not shown.
    heading = ["POLICY", "60%", "80%", "100%", "120%", "FAILED", "P50 US", "P99 US", "SECONDS"]
    assert re.split(" {2,}", lines[3]) == heading
    assert lines[4].split()[:6] == ["first", "60.00", "80.00", "80.00", "80.00", "3"]
    assert lines[5].split()[0] == "weighted"
    assert len(lines) == 6


def test_narrow_table(sandbox, small):
    """A narrow table keeps the most important columns."""
    done = sim(sandbox, *small, env={"COLUMNS": "30"})
    heading = done.stdout.splitlines()[3]
    assert len(heading) <= 30
    assert heading.split()[0] == "POLICY" and "130%" in heading


def lines_of(chart):
    return [line for line in chart.iter(f"{SVG}polyline") if "policy" in line.get("class")]


def test_chart(sandbox, small):
    path = sandbox.directory / "chart.svg"
    path.write_text("x" * 1000000)
    done = sim(sandbox, *small, "--policy", "weighted,best-compute", "--plot", path)
    assert (done.code, done.stderr) == (0, "")
    chart = ElementTree.fromstring(path.read_text())
    assert chart.tag == f"{SVG}svg"
    lines = lines_of(chart)
    assert [line.find(f"{SVG}title").text for line in lines] == ["first", "weighted", "best-compute"]
    assert len({line.get("class") for line in lines}) == 3
    words = [text.text for text in chart.iter(f"{SVG}text")]
    for wanted in ("Allocated GPUs against demand", "first", "weighted", "best-compute", "60", "130", "100"):
        assert wanted in words
    _, _, width, height = (float(number) for number in chart.get("viewBox").split())
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert len(points) > 20
        assert points == sorted(points)
        assert all(0 < x < width and 0 < y < height for x, y in points)
    assert "href" not in path.read_text()


def test_chart_of_many_policies(sandbox, small):
    """The eleventh and later lines look different from the first ten, and names do not overlap."""
    path = sandbox.directory / "chart.svg"
    assert sim(sandbox, *small, "--policy", ",".join(["first"] * 14), "--plot", path).code == 0
    chart = ElementTree.fromstring(path.read_text())
    looks = [(line.get("class"), line.get("stroke-dasharray")) for line in lines_of(chart)]
    assert len(looks) == len(set(looks)) == 15
    places = [float(text.get("y")) for text in chart.iter(f"{SVG}text") if text.text == "first"]
    assert len(places) == 15
    assert all(later - earlier >= 18.9 for earlier, later in zip(places, places[1:]))
    assert places[0] > 0 and places[-1] < float(chart.get("height"))


def test_chart_of_a_strange_name(sandbox):
    options = write(sandbox, THREE, FIVE)
    (sandbox.directory / "pods.csv").rename(sandbox.directory / 'a<b>&"\x1b.csv')
    options[3] = 'a<b>&"\x1b.csv'
    assert sim(sandbox, *options, "--plot", "chart.svg").code == 0
    chart = ElementTree.fromstring((sandbox.directory / "chart.svg").read_text())
    assert 'a<b>&"\ufffd' in chart.find(f"{SVG}title").text


@pytest.mark.parametrize("tune", ["0.01", "0.4", "2", "10"])
def test_chart_of_any_demand(sandbox, tune):
    """The chart is valid even if it shows almost nothing."""
    assert sim(sandbox, *write(sandbox, THREE, FIVE), "--plot", "chart.svg", "--tune", tune).code == 0
    text = (sandbox.directory / "chart.svg").read_text()
    assert ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert "nan" not in text and "inf" not in text


def test_chart_that_cannot_be_written(sandbox):
    options = write(sandbox, THREE, FIVE)
    done = sim(sandbox, *options, "--plot", "no/such/place.svg")
    assert done == (2, "", "berth: sim place: cannot write no/such/place.svg: No such file or directory\n")
    done = sim(sandbox, *options, "--plot", "/dev/full")
    assert done == (2, "", "berth: sim place: cannot write /dev/full: No space left on device\n")


def test_progress_on_a_terminal(sandbox, small):
    """The progress bar disappears at the end. Without a terminal on stderr there is no bar."""
    program = sandbox.terminal(["berth", "sim", "place", *small, "--seeds", "1-3"], columns=120, env={"LC_ALL": "C"})
    assert program.wait() == 0
    screen = program.screen
    assert re.search(rb"\r\x1b\[K\[[.#]{30}\]   0 %  first, seed 1", screen)
    shown, _, rest = screen.rpartition(b"\r\x1b[K")
    assert b"POLICY" not in shown and b"POLICY" in rest and b"seed 1\r" not in rest


def test_no_progress_without_a_cursor(sandbox, small):
    program = sandbox.terminal(["berth", "sim", "place", *small], columns=120, env={"TERM": "dumb"})
    assert program.wait() == 0
    assert b"\x1b[K" not in program.screen and b" %  first" not in program.screen


def test_bar_in_blocks(sandbox, small):
    program = sandbox.terminal(["berth", "sim", "place", *small], columns=120, env={"LC_ALL": "C.UTF-8"})
    assert program.wait() == 0
    assert "\u2591".encode() * 30 in program.screen


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["--pods", "p"], "expected --nodes FILE, got none"),
        (["--nodes", "n"], "expected --pods FILE, got none"),
        (["--nodes", "none.csv", "--pods", "p"], "cannot read none.csv: No such file or directory"),
        (["--nodes", ".", "--pods", "p"], "cannot read .: it is a directory"),
        (["--seed", "1", "--seeds", "1-2", "--nodes", "n", "--pods", "p"], "expected --seed or --seeds, got both"),
        (["--seed", "x"], "--seed: expected a whole number, got 'x'"),
        (["--seed", "-1"], "--seed: expected a whole number, got '-1'"),
        (["--seed", "18446744073709551616"], "--seed: expected a whole number from 0 to 18446744073709551615"),
        (["--seeds", "5"], "--seeds: expected a range such as 42-51, got '5'"),
        (["--seeds", "5-4"], "--seeds: expected a whole number from 5 to 10004, got 4"),
        (["--seeds", "5-"], "--seeds: expected a whole number, got ''"),
        (["--seeds", "1-100000"], "--seeds: expected a whole number from 1 to 10000, got 100000"),
        (["--tune", "0"], "--tune: expected more than 0, got '0'"),
        (["--tune", "11"], "--tune: expected a number from 0 to 10, got '11'"),
        (["--tune", "nan"], "--tune: expected a number from 0 to 10, got 'nan'"),
        (["--scale", "0"], "--scale: expected a whole number from 1 to 1000, got 0"),
        (["--ties", "both"], "--ties: expected one of name, seed, got 'both'"),
        (["--policy", "fist"], "--policy: expected one of first, "),
        (["--policy", "first,"], "--policy: expected one of first, "),
        (["more"], "expected only options, got 'more'"),
    ],
)
def test_wrong_usage(sandbox, args, wanted):
    done = sim(sandbox, *args)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: sim place: {wanted}"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "nodes, wanted",
    [
        ("", "nodes.csv:1: expected a header with column names, got none"),
        ("sn,cpu_milli,gpu\n", "nodes.csv:1: expected a column 'memory_mib', got none"),
        (NODES, "nodes.csv: expected nodes with GPUs, got none"),
        (NODES + "a,1,1,0,\n", "nodes.csv: expected nodes with GPUs, got none"),
        (NODES + "a,1,1,1\n", "nodes.csv:2: expected 5 fields, as in the header, got 4"),
        (NODES + ",1,1,1,\n", "nodes.csv:2: sn: expected a name, got nothing"),
        (NODES + "a,1,1,1,T4\n\nb,x,1,1,T4\n", "nodes.csv:4: cpu_milli: expected a whole number, got 'x'"),
        (NODES + "a,-1,1,1,T4\n", "nodes.csv:2: cpu_milli: expected a whole number, got '-1'"),
        (NODES + "a,1,1,1025,T4\n", "nodes.csv:2: gpu: expected a whole number from 0 to 1024, got 1025"),
        (
            NODES + "a,1,9000000000,1,T4\n",
            "nodes.csv:2: memory_mib: expected a whole number from 0 to 1000000000, got 9000000000",
        ),
        (NODES + "b,1,1,1,\na,1,1,1,\nb,2,2,2,\n", "nodes.csv:4: expected a unique name, got 'b' as in line 2"),
        (NODES + "a,1,1,1," + "x" * 300 + "\n", "nodes.csv:2: model: expected at most 255 bytes, got 300"),
        (NODES + "".join(f"{i},1,1,1024,\n" for i in range(1000)), "nodes.csv: expected at most 999999 GPUs, got more"),
    ],
)
def test_bad_nodes(sandbox, nodes, wanted):
    assert sim(sandbox, *write(sandbox, nodes, FIVE)) == (2, "", f"berth: sim place: {wanted}\n")


@pytest.mark.parametrize(
    "pods, wanted",
    [
        ("", "pods.csv:1: expected a header with column names, got none"),
        ("cpu_milli,memory_mib,num_gpu\n", "pods.csv:1: expected a column 'gpu_milli', got none"),
        (PODS, "pods.csv: expected pods with GPUs, got none"),
        (PODS + "p,1,1,0,0,\n", "pods.csv: expected pods with GPUs, got none"),
        (PODS + "p,1,1,1,0,\n", "pods.csv:2: gpu_milli: expected 1 to 1000 for a pod with GPUs, got 0"),
        (PODS + "p,1,1,2,500,\n", "pods.csv:2: gpu_milli: expected 1000 for a pod with 2 GPUs, got 500"),
        (PODS + "p,1,1,1,1001,\n", "pods.csv:2: gpu_milli: expected a whole number from 0 to 1000, got 1001"),
        (PODS + "p,0,0,0,0,\n", "pods.csv:2: expected CPUs, memory or GPUs, got none"),
        (PODS + "p,1,1,1,1000,T4|\n", "pods.csv:2: model: expected names with | between them, got 'T4|'"),
        (PODS + "p,1,1,1,1000\n", "pods.csv:2: expected 6 fields, as in the header, got 5"),
        (PODS + "p,1,1,1.5,1000,\n", "pods.csv:2: num_gpu: expected a whole number, got '1.5'"),
        (PODS + "p,1,1,1,1000,\nq,1,1,1,1\0,\n", "pods.csv:3: expected text, got a zero byte"),
        (PODS + '"p,1,1,1,1000,\n', "pods.csv:2: expected a closing quote, got the end of the file"),
    ],
)
def test_bad_pods(sandbox, pods, wanted):
    assert sim(sandbox, *write(sandbox, THREE, pods)) == (2, "", f"berth: sim place: {wanted}\n")


def test_pods_that_fit_nowhere(sandbox):
    """More GPUs than a node has, an unknown model, too many CPUs: such pods are always dropped."""
    pods = PODS + "p,1,1,3,1000,\nq,1,1,1,1000,H100\nr,9000,1,1,1000,\ns,9000,1,0,0,\n"
    found = document(sandbox, *write(sandbox, THREE, pods), "--tune", "2")
    assert found["failed"] == found["decisions"]
    assert found["allocated"]["100"] in (0, None)


def test_help(sandbox):
    shown = sim(sandbox, "--help")
    assert shown.code == 0 and shown.stdout.startswith("Usage: berth sim place --nodes FILE --pods FILE [options]\n")
    assert sandbox.run(["berth", "sim", "--help"]).stdout == sandbox.run(["berth", "help", "sim"]).stdout
    assert sandbox.run(["berth-sim", "place", "--help"]) == shown


@pytest.mark.parametrize(
    "args, wanted",
    [
        ([], "expected place | queue [options], got nothing"),
        (["plaice"], "no subcommand 'plaice', did you mean 'place'?"),
        (["xyzzy"], "no subcommand 'xyzzy' (--help lists them)"),
    ],
)
def test_words(sandbox, args, wanted):
    assert sandbox.run(["berth", "sim", *args]) == (2, "", f"berth: sim: {wanted}\n")


def test_full_disk(sandbox, small):
    done = sandbox.run(["sh", "-c", 'exec berth sim place "$@" >/dev/full', "sh", *small])
    assert done == (125, "", "berth: cannot write standard output: No space left on device\n")
