# SPDX-License-Identifier: Apache-2.0
"""A daemon that sends the messages that a test chooses, including those that a real daemon sends too rarely.

    daemon = ScriptedDaemon(sandbox)
    program = sandbox.start(["berth", "run", "true"], env=daemon.env)
    client = daemon.accept()
    claim = client.expect("CLAIM")
    client.grant(claim)
"""
import socket

import wire
from wire_format import MESSAGE_MOST

GPU = {"id": "nvidia0", "uuid": "GPU-0"}


class Client:
    """One connection, seen from the daemon's side."""

    def __init__(self, connection):
        self.socket = connection

    def receive(self):
        """Returns the next message."""
        data = self.socket.recv(MESSAGE_MOST)
        assert data, "expected a message, got the end"
        return wire.decode(data)

    def expect(self, kind):
        """Returns the next message, which must be of this type. Answers the pings of a wait before it."""
        message = self.receive()
        while message["type"] == "HELLO" != kind:
            self.say("POOL", message, pid=1)
            message = self.receive()
        assert message["type"] == kind, message
        return message

    def expect_end(self):
        """Waits until the client closes the connection, whether it has read everything or not."""
        try:
            assert self.socket.recv(MESSAGE_MOST) == b""
        except ConnectionResetError:
            pass

    def say(self, kind, about, **values):
        """Sends an answer to the message `about`."""
        self.socket.send(wire.encode(kind, about["number"], **values))

    def grant(self, claim, lease=7, devices=(GPU,), **values):
        values = {"replicas": 1, "vendors": 1, "socket": "/nowhere", "pool": "p", **values}
        self.say("GRANTED", claim, id=lease, devices=list(devices), **values)

    def refuse(self, question, error, text):
        self.say("REFUSED", question, error=wire.ERRORS[error], text=text)

    def close(self):
        self.socket.close()


class ScriptedDaemon:
    def __init__(self, sandbox):
        self.path = sandbox.directory / "scripted.sock"
        self.env = {"BERTH_SOCKET": str(self.path)}
        self.clients = []
        self.listen()

    def listen(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(wire.TIMEOUT)
        self.path.unlink(missing_ok=True)
        self.socket.bind(str(self.path))
        self.socket.listen()

    def accept(self):
        connection = self.socket.accept()[0]
        connection.settimeout(wire.TIMEOUT)
        self.clients.append(Client(connection))
        return self.clients[-1]

    def close(self):
        """Closes all sockets, as the death of a daemon does."""
        for client in self.clients:
            client.close()
        self.socket.close()
