"""A Graphite listener in this process: takes text lines or pickle frames and keeps the points that came in."""

import pickle
import re
import selectors
import socket
import struct
import threading
import time
from typing import NamedTuple

# The opcodes that node writes, and no others: a byte that differs is a difference.
_PICKLE_POINT = re.compile(rb"\(S'([^\n]*)'\n\(L(\d+)L\nS'([^\n]*)'\ntta")


class Point(NamedTuple):
    """One received point. The value is the text on the wire, not a number."""

    name: bytes
    value: bytes
    time: int


class FormError(Exception):
    """The bytes are not what a Graphite server understands."""


def parse_lines(data):
    """Whole lines to points, and the unfinished rest."""
    *lines, rest = data.split(b"\n")
    points = []
    for line in lines:
        # A name may hold spaces when it was not sanitised, so the fields are counted from the end.
        fields = line.rsplit(b" ", 2)
        if len(fields) != 3 or not fields[2].isdigit():
            raise FormError(f"no Graphite line: {line!r}")
        points.append(Point(fields[0], fields[1], int(fields[2])))
    return points, rest


def parse_pickle(data):
    """Whole frames to points, and the unfinished rest."""
    points = []
    while len(data) >= 4:
        (length,) = struct.unpack(">I", data[:4])
        if len(data) < 4 + length:
            break
        body, data = data[4 : 4 + length], data[4 + length :]
        if not (body.startswith(b"(l") and body.endswith(b".")):
            raise FormError(f"no pickle frame: {body[:40]!r}")
        at = 2
        while at < len(body) - 1:
            match = _PICKLE_POINT.match(body, at)
            if not match:
                raise FormError(f"no pickled point: {body[at:at + 120]!r}")
            points.append(Point(match[1], match[3], int(match[2])))
            at = match.end()
        # What Python makes of the frame is what Carbon sees. The form above lets no opcode through that builds objects.
        decoded = [Point(name, value, when) for name, (when, value) in pickle.loads(body, encoding="bytes")]
        if decoded != points[-len(decoded) :]:
            raise FormError("pickle reads other points than the frame spells")
    return points, data


class Listener:
    """Listens on a port of its own, `port`, until closed.

    With `last`, the name of the point that ends a flush, points are given out a flush at a time: each connection's
    are put together on their own, so that neither a pause within a flush nor a reader who comes late mixes two.
    """

    def __init__(self, pickle=False, last=None):
        self._parse = parse_pickle if pickle else parse_lines
        self._lock = threading.Lock()
        self._points = []
        self._last_name = last
        self._flushes = []
        self._last_arrival = 0.0
        self._error = None
        self._stop = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stop = True
        self._thread.join()
        self._selector.close()
        self._server.close()

    def flushes(self):
        """How many whole flushes wait to be taken."""
        with self._lock:
            self._check()
            return len(self._flushes)

    def last_arrival(self):
        """Monotonic time at which the last flush was whole."""
        with self._lock:
            return self._last_arrival

    def take_flushes(self):
        """The whole flushes since the last call, each a list of points."""
        with self._lock:
            self._check()
            flushes, self._flushes = self._flushes, []
            return flushes

    def take(self):
        """The points since the last call, for a listener without `last`."""
        with self._lock:
            self._check()
            points, self._points = self._points, []
            return points

    def _check(self):
        if self._error:
            raise self._error

    def _run(self):
        # By connection: bytes of an unfinished line or frame, points of an unfinished flush.
        open_ones = {}
        while not self._stop:
            for key, _ in self._selector.select(timeout=0.05):
                if key.fileobj is self._server:
                    connection, _ = self._server.accept()
                    self._selector.register(connection, selectors.EVENT_READ)
                    open_ones[connection] = (b"", [])
                else:
                    self._read(key.fileobj, open_ones)
        for connection in open_ones:
            connection.close()

    def _read(self, connection, open_ones):
        try:
            data = connection.recv(1 << 18)
        except OSError:
            data = b""
        held, begun = open_ones.pop(connection)
        with self._lock:
            try:
                if not data:
                    self._selector.unregister(connection)
                    connection.close()
                    if held or begun:
                        raise FormError("the connection was closed inside a line, a frame or a flush")
                    return
                points, rest = self._parse(held + data)
                open_ones[connection] = (rest, self._keep(begun, points))
            except FormError as error:
                self._error = self._error or error

    def _keep(self, begun, points):
        """Puts points where they can be taken; those of a flush that is not whole are given back."""
        if self._last_name is None:
            self._points.extend(points)
            return []
        for point in points:
            begun.append(point)
            if point.name == self._last_name:
                self._flushes.append(begun)
                self._last_arrival = time.monotonic()
                begun = []
        return begun
