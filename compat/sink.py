"""Sockets of this process that keep what comes to them, as long as the program runs. Points: graphite.py."""

import socket
import threading


class Sink:
    """Listens on a port of its own, `port`: for datagrams, or for lines on any number of connections."""

    def __init__(self, kind):
        self._got = []
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            self._socket.listen()
        else:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        threading.Thread(target=self._accept if kind == socket.SOCK_STREAM else self._receive, daemon=True).start()

    def got(self):
        """All datagrams, or all whole lines with their line feeds, in the order of their arrival."""
        return list(self._got)

    def _receive(self):
        while True:
            self._got.append(self._socket.recv(1 << 16))

    def _accept(self):
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        rest = b""
        with connection:
            try:
                while piece := connection.recv(1 << 16):
                    *lines, rest = (rest + piece).split(b"\n")
                    self._got += [line + b"\n" for line in lines]
            except ConnectionError:
                return
