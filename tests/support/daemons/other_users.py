# SPDX-License-Identifier: Apache-2.0
"""Code that runs as another user, which only root can do."""
import contextlib
import os
import pickle
import select
import signal
import traceback

import processes


@contextlib.contextmanager
def acting_as(uid):
    """Within this context, new connections and processes belong to this user and to the group of the same number."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class OtherUser:
    """A function that runs as another user in its own process."""

    def __init__(self, uid, function, *args):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            _run(write, uid, function, args)
        os.close(write)
        self.answer = read

    def runs(self, pause=0):
        """Returns whether the function still runs after a pause. The pause ends early when the function ends."""
        return not select.select([self.answer], [], [], pause)[0]

    def result(self, timeout=60.0):
        """Waits for the function's end, and returns its value. An exception in the function fails the test."""
        assert select.select([self.answer], [], [], timeout)[0], f"no answer within {timeout} s"
        with open(self.answer, "rb") as stream:
            data = stream.read()
        processes.wait_for_end(self.pid)
        os.waitpid(self.pid, 0)
        assert data, "the process was killed"
        value, failure = pickle.loads(data)
        assert failure is None, failure
        return value

    def kill(self):
        os.close(self.answer)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _run(write, uid, function, args):
    value = failure = None
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        value = function(*args)
    except BaseException:  # the test reports every exception
        failure = traceback.format_exc()
    with contextlib.suppress(OSError), open(write, "wb") as stream:
        stream.write(pickle.dumps((value, failure)))
    os._exit(0)
