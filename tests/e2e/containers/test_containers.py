# SPDX-License-Identifier: Apache-2.0
"""Containers: their processes belong to a lease although they are not descendants of its holder."""
import json
import os
import re
import signal
import time

import pytest
import wire
from containers import LENT, LENT_COUNT, Containers, lent
from daemon_log import wait_for
from shared_machine import ALICE, BOB
from waiting import until, until_pending

ID = "3f4e" * 16
OTHER_ID = "3f4f" * 16
SOMEBODY = 71009  # a user without any lease


@pytest.fixture
def containers(sandbox):
    subordinate = sandbox.directory / "subuid"
    subordinate.write_text("".join(f"{uid}:{lent(uid)}:{LENT_COUNT}\n" for uid in (ALICE, BOB)))
    sandbox.environment["BERTH_SUBUID"] = str(subordinate)
    made = Containers(sandbox)
    yield made
    made.close()


def need_user_namespaces(containers):
    try:
        containers.start(user=True).end()
    except OSError as error:
        pytest.skip(f"no user namespaces here: {str(error).splitlines()[-1]}")


@pytest.fixture
def rootless(containers):
    """Start containers in their own namespaces, without root privileges."""
    need_user_namespaces(containers)
    return lambda **facts: containers.start(user=True, **facts)


def need_group(containers, identity=None):
    made = containers.group(identity)
    if made is None:
        pytest.skip("no control groups can be made here")
    return made


def mark(lease, socket):
    return {"BERTH_LEASE": str(lease), "BERTH_SOCKET": str(socket)}


# ---- Owners of processes ----


def judged(pool, index, facts):
    """Return how the pool classifies processes that the probe reports with these facts: the lease of
    each, or "squats"."""
    pool.says([pool.device(index, processes=facts)])
    slots = pool.until(
        lambda slots: len(slots[f"nvidia{index}"]["device"].get("processes", [])) == len(facts), "the processes"
    )
    found = slots[f"nvidia{index}"]["device"]["processes"]
    assert not any(name in process for process in found for name in ("owner", "said_lease", "said_socket"))
    return ["squats" if process.get("squats") else process.get("lease") for process in found]


def test_a_mark_counts_for_who_answers_for_the_container(pool_with, sleeper):
    pool = pool_with([0])
    holder = pool.hold()
    lease, me = int(holder.lease), os.getuid()
    said = {"said_lease": lease, "said_socket": str(pool.socket)}
    wanted = [
        ({"uid": LENT, "owner": me}, lease),
        ({"uid": LENT, "owner": me, "container": ID}, lease),
        ({"uid": 0, "container": ID}, lease),
        ({"uid": SOMEBODY, "owner": 0, "container": ID}, lease),
        ({"uid": LENT, "owner": SOMEBODY, "container": ID}, "squats"),
        ({"uid": SOMEBODY, "container": ID}, "squats"),
    ]
    facts = [{"pid": sleeper().pid, **fact, **said} for fact, _ in wanted]
    assert judged(pool, 0, facts) == [answer for _, answer in wanted]
    pool.says([0])
    pool.let_go(holder)


def test_all_of_a_container_are_of_one_lease(pool_with, sleeper):
    """The device has two leases. Only the mark of one process shows which lease its container
    belongs to."""
    pool = pool_with([0])
    holders = [pool.hold("--sharing", "time-slice") for _ in range(2)]
    lease, me = int(holders[1].lease), os.getuid()
    said = {"said_lease": lease, "said_socket": str(pool.socket)}
    wanted = [
        ({"uid": me, "container": ID}, lease),
        ({"uid": me, "container": ID, **said}, lease),
        ({"uid": LENT, "owner": me, "container": ID}, lease),
        ({"uid": 0, "container": ID}, lease),
        ({"uid": SOMEBODY, "container": ID}, "squats"),
        ({"uid": me, "container": OTHER_ID}, "squats"),
        ({"uid": me}, "squats"),
    ]
    assert judged(pool, 0, [{"pid": sleeper().pid, **fact} for fact, _ in wanted]) == [answer for _, answer in wanted]
    pool.says([0])
    for holder in holders:
        pool.let_go(holder)


def test_the_only_lease_is_that_of_its_users_containers(pool_with, sleeper):
    pool = pool_with([0])
    holder = pool.hold()
    lease, me = int(holder.lease), os.getuid()
    wanted = [
        ({"uid": me, "container": ID}, lease),
        ({"uid": LENT, "owner": me}, lease),
        ({"uid": me}, "squats"),
        ({"uid": SOMEBODY, "container": ID}, "squats"),
        ({"uid": LENT, "owner": SOMEBODY}, "squats"),
    ]
    assert judged(pool, 0, [{"pid": sleeper().pid, **fact} for fact, _ in wanted]) == [answer for _, answer in wanted]
    pool.says([0])
    pool.let_go(holder)


def test_what_was_seen_under_a_lease_keeps_its_device(pool_with, sleeper):
    """A container without any mark outlives the lease. Its processes still count as part of this
    lease, not as squatters."""
    pool = pool_with([0])
    holder = pool.hold()
    fact = {"pid": sleeper().pid, "uid": LENT, "owner": os.getuid(), "container": ID}
    assert judged(pool, 0, [fact]) == [int(holder.lease)]
    pool.let_go(holder)
    slots = pool.until_state("nvidia0", "DRAINING")
    [process] = slots["nvidia0"]["device"]["processes"]
    assert (process["lease"], process.get("squats")) == (int(holder.lease), None)


# ---- Texts about processes without a lease ----


def test_a_squatter_in_a_container_is_named_as_such(hardware_of, sleeper, site):
    site.configure("notify")
    pool = hardware_of([0])
    assert pool.berth("status").code == 0
    fact = {"pid": sleeper().pid, "uid": SOMEBODY, "container": ID, "command": "python train.py"}
    assert judged(pool, 0, [fact]) == ["squats"]
    site.until("end", "squatter", "nvidia0")
    told = site.environment("squatter")
    advice = f"start it with 'berth cdi --arguments', or 'berth adopt --container {ID[:12]}'"
    assert told["BERTH_MESSAGE"] == (
        f"nvidia0 is used without a lease by process {fact['pid']} of uid {SOMEBODY} in container {ID[:12]} "
        f"({advice}): python train.py"
    )
    assert told["BERTH_CONTAINER"] == ID
    [entry] = wait_for(pool.log, "squatted", device="nvidia0")
    assert (entry.values["container"], entry.values["advice"]) == (ID, advice)
    assert f"process {fact['pid']} is in a container: {advice}\n" in pool.berth("status").stdout


# ---- The end of a lease ----


@pytest.fixture
def own_pool(pool_of):
    """Make a pool of one device, with an optional configuration."""

    def make(rules=""):
        pool = pool_of(1)
        directory = pool.sandbox.home / ".config/berth"
        directory.mkdir(parents=True)
        (directory / "berth.yaml").write_text(rules)
        return pool

    return make


def state_of(pool):
    with wire.connect(str(pool.socket)) as client:
        return client.look()["slots"][0].get("state", 0)


def until_ended(container):
    until(lambda: not container.is_running(), "the container's end")


def test_a_container_keeps_the_device_after_its_holder(own_pool, rootless):
    """As with `docker run -d`, or when podman is killed: the container with the mark still runs.
    The daemon sends it SIGTERM, but the first process of a pid namespace does not receive this
    signal."""
    pool = own_pool("grace: 1h\n")
    holder = pool.hold()
    container = rootless(environment=mark(holder.lease, pool.socket))
    pool.let_go(holder)
    until(lambda: state_of(pool) == wire.STATES["DRAINING"], "a device that drains")
    waits = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    assert container.is_running()
    container.end()
    assert waits.wait_for_line("nvidia") == "nvidia0"
    assert waits.wait() == 0


@pytest.mark.parametrize("how", ["release", "time", "reserved"])
def test_a_container_is_ended_with_the_lease(own_pool, rootless, how):
    pool = own_pool("grace: 200ms\n")
    if how == "reserved":
        lease = pool.berth("reserve", "--for", "1h").stdout.strip()
    else:
        holder = pool.hold(*(["--time", "4s"] if how == "time" else []))
        lease = holder.lease
    container = rootless(environment=mark(lease, pool.socket))
    if how != "time":
        assert container.is_running()
        assert pool.berth("release", lease).code == 0
    until_ended(container)
    if how != "reserved":
        assert holder.wait() == (124 if how == "time" else -signal.SIGTERM)
    assert pool.berth("run", "--wait", "10s", "true").code == 0


@pytest.fixture(params=["root", "nobody"])
def daemon_options(request):
    """The daemon runs as root, or as a user with the capabilities that it needs."""
    if request.param == "root":
        return []
    request.getfixturevalue("nobody")
    return ["--user", "nobody"]


def test_uids_that_are_lent_are_those_of_who_made_the_namespace(shared_machine_of, containers, daemon_options):
    """Two containers run processes of other users than the containers' root. Both have the same
    user's lease in their environment."""
    need_user_namespaces(containers)
    shared_machine = shared_machine_of(1)
    shared_machine.open("grace: 200ms\n", *daemon_options)
    holder = shared_machine.hold(ALICE)
    said = mark(holder.lease, shared_machine.socket)
    mine = containers.start(user=True, uid=ALICE, inner=5, environment=said)
    his = containers.start(user=True, uid=BOB, inner=5, environment=said)
    assert os.stat(f"/proc/{mine.pid}").st_uid == lent(ALICE) + 4
    shared_machine.let_go(holder)
    until_ended(mine)
    assert shared_machine.berth(ALICE, "run", "--wait", "10s", "true").code == 0
    assert his.is_running()


def test_containers_of_root_that_carry_a_mark(shared_machine_of, containers, daemon_options):
    """The lease's user could not signal their processes, and they use no device: they go on."""
    shared_machine = shared_machine_of(1)
    identity = need_group(containers)
    shared_machine.open("grace: 200ms\n", *daemon_options)
    holder = shared_machine.hold(ALICE)
    said = mark(holder.lease, shared_machine.socket)
    others = [
        containers.start(identity, uid=SOMEBODY, environment=said),
        containers.start(identity, environment=said),
        containers.start(identity, uid=BOB, alone=False, environment=said),
    ]
    shared_machine.let_go(holder)
    assert shared_machine.berth(ALICE, "run", "--wait", "10s", "true").code == 0
    assert all(other.is_running() for other in others)


# ---- The probe ----


def test_the_probe_says_who_answers(namespace_pool, namespace, containers):
    """No process has the uid of the lease's user; all of them have the lease's mark."""
    card = namespace.machine.add_amd(4)
    namespace.enter()
    identity = need_group(containers)
    holder = namespace_pool.hold()
    command = ["sh", "-c", f"exec 5<>{card.node_path()}; exec sleep 1000"]
    said = mark(holder.lease, namespace_pool.socket)
    order = {"command": command, "environment": said, "inside": namespace.inside}
    lent = containers.start(user=True, uid=ALICE, inner=0, **order)
    shares = containers.start(user=True, uid=0, inner=5, **order)
    docker = containers.start(identity, uid=SOMEBODY, **order)
    slots = namespace_pool.until(
        lambda slots: len(slots["amd0"]["device"].get("processes", [])) == 3, "the three processes"
    )
    found = {process["pid"]: process for process in slots["amd0"]["device"]["processes"]}
    assert (found[lent.pid].get("lease"), found[lent.pid]["uid"]) == (None, ALICE)
    assert found[shares.pid]["lease"] == int(holder.lease)
    assert found[docker.pid]["lease"] == int(holder.lease)
    assert (found[docker.pid]["container"], found[docker.pid]["uid"]) == (identity, SOMEBODY)
    for container in (lent, shares, docker):
        container.end()
    namespace_pool.let_go(holder)


# ---- Adopting ----


def use(shared_machine, index, container):
    """Let a container's process use a GPU from now on."""
    uid = os.stat(f"/proc/{container.pid}").st_uid
    shared_machine.gpus.use(index, container.pid, uid=uid, group=f"/docker-{container.id}.scope", started=time.time())


def squatters(shared_machine):
    seen = json.loads(shared_machine.berth(ALICE, "status", "--json").stdout)
    return [process["pid"] for device in seen["devices"] for process in device["squatters"]]


def until_squatted(shared_machine, count):
    until(lambda: len(squatters(shared_machine)) == count, f"{count} squatters")


@pytest.mark.parametrize("facts", [{"uid": ALICE}, {"user": True, "uid": ALICE, "inner": 5}], ids=["own", "lent"])
def test_adopt_a_container(shared_machine, containers, facts, daemon_options):
    """The adopted container includes processes that were added later and are not descendants of
    its first process."""
    shared_machine.open("", *daemon_options)
    identity = need_group(containers)
    first = containers.start(identity, **facts)
    later = containers.start(identity, **facts)
    use(shared_machine, 0, first)
    use(shared_machine, 2, later)
    until_squatted(shared_machine, 2)
    refused = shared_machine.berth(BOB, "adopt", "--container", identity)
    assert refused == (125, "", f"berth: adopt: cannot adopt process {first.pid}: it belongs to another user\n")
    done = shared_machine.berth(ALICE, "adopt", "--container", identity[:12], "--name", "forgot")
    assert (done.code, done.stderr) == (0, "")
    seen = json.loads(shared_machine.berth(BOB, "status", "--json").stdout)
    [held] = seen["leases"]
    assert (held["id"], held["uid"], held["pid"], held["adopted"]) == (int(done.stdout), ALICE, first.pid, True)
    assert [device["id"] for device in held["devices"]] == ["nvidia0", "nvidia2"]
    until_squatted(shared_machine, 0)
    again = shared_machine.berth(ALICE, "adopt", "--container", identity)
    assert again.stderr == f"berth: adopt: cannot adopt process {first.pid}: it already has lease {held['id']}\n"
    later.end()
    shared_machine.gpus.leave(2, later.pid)
    assert [lease["id"] for lease in shared_machine.look()["leases"]] == [held["id"]]
    first.end()
    shared_machine.gpus.leave(0, first.pid)
    until(lambda: not shared_machine.look()["leases"], "the end of the lease")


def test_a_pid_within_a_container_is_only_itself(shared_machine, containers):
    shared_machine.open()
    identity = need_group(containers)
    script = "sleep 1000 & exec sleep 1000"
    first = containers.start(identity, uid=ALICE, command=["sh", "-c", script])
    [child] = until(lambda: read_children(first.pid), "its child")
    use(shared_machine, 0, first)
    until_squatted(shared_machine, 1)
    refused = shared_machine.berth(ALICE, "adopt", str(child))
    assert refused.code == 125 and f"process {child} uses no device" in refused.stderr


def read_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(word) for word in children.read().split()]


def test_root_adopts_everybodys_and_ends_them(shared_machine, containers):
    shared_machine.open("grace: 200ms\n")
    identity = need_group(containers)
    container = containers.start(identity)
    use(shared_machine, 1, container)
    until_squatted(shared_machine, 1)
    refused = shared_machine.berth(ALICE, "adopt", "--container", identity)
    assert refused == (125, "", f"berth: adopt: cannot adopt process {container.pid}: it belongs to another user\n")
    done = shared_machine.sandbox.run(["berth", "adopt", "--container", identity])
    assert (done.code, done.stderr) == (0, "")
    assert shared_machine.sandbox.run(["berth", "release", done.stdout.strip()]).code == 0
    until_ended(container)


def test_which_container_has_to_be_clear(containers, sandbox, pool_of):
    pool = pool_of(1)
    beginning = need_group(containers)[:12]
    for digit in "ab":
        identity = need_group(containers, beginning + digit * 52)
        containers.start(identity)
    done = pool.berth("adopt", "--container", beginning, "-n", "1")
    assert (done.code, done.stdout) == (125, "")
    assert re.fullmatch(
        f"berth: adopt: several containers have ids that begin with '{beginning}': "
        f"{beginning}(a, {beginning}b|b, {beginning}a)\n",
        done.stderr,
    )
    assert pool.berth("adopt", "--container", identity, "-n", "1").stdout == "1\n"
    containers.started[-1].end()
    assert pool.berth("run", "--wait", "10s", "true").code == 0


def test_a_container_that_is_not_there(sandbox, pool_of):
    pool = pool_of(1)
    wanted = "no running container has the id 'nobodys' ('podman ps' and 'docker ps' list ids)"
    assert pool.berth("adopt", "--container", "nobodys") == (125, "", f"berth: adopt: {wanted}\n")
    both = "expected a pid or a container, got --container 'nobodys' and '4711'"
    assert pool.berth("adopt", "--container", "nobodys", "4711") == (2, "", f"berth: adopt: {both}\n")
    assert pool.berth("adopt") == (2, "", "berth: adopt: expected one pid, got 0\n")
