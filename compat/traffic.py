"""Seeded StatsD traffic, good and bad, that the original survives.

What is left out, and nothing else: inputs that kill or poison the original, and the few where Staunch differs on
purpose (infinite values, a negative timer behind a trailing CR, rates outside 0 < r <= 1, rates with an exponent or in
hexadecimal). `survivable` decides that for each line, so that the generator may be as wild as it likes.
"""

import math
import re

# White space of JavaScript's \s and Number().
JS_SPACE = " \t\v\f\r\n\u00a0\ufeff\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_PREFIXED = re.compile(r"0([xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)", re.ASCII)
_PLAIN_RATE = re.compile(r"@(\d+\.?\d*|\.\d+)[ \t\r]*", re.ASCII)

# Names that every JavaScript object has: as keys or members they end or poison the original.
_INHERITED = {
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
}  # fmt: skip

# Above this, sums of squares leave the finite numbers.
_MAGNITUDE_MAX = 1e100


def js_number(text):
    """JavaScript's Number(text); NaN when it is none."""
    text = text.strip(JS_SPACE)
    if not text:
        return 0.0
    if _PREFIXED.fullmatch(text):
        return float(int(text, 0))
    if _DECIMAL.fullmatch(text):
        return float(text)
    if text in ("Infinity", "+Infinity", "-Infinity"):
        return math.inf
    return math.nan


def sanitise(key):
    """A key as both servers store it."""
    key = re.sub(f"[{JS_SPACE}]+", "_", key).replace("/", "-")
    return re.sub(r"[^a-zA-Z_\-0-9.;=]", "", key)


def key_of(line):
    """The stored key of a line, with its tags."""
    text = line.decode("utf-8", "replace")
    head, *rest = text.split("|#")
    key = head.split(":")[0]
    if rest and rest[0]:
        tags = [tag.replace(";", "_", 1).replace(":", "=", 1) for tag in rest[0].split(",")]
        key += ";" + ";".join(tags)
    return sanitise(key)


def survivable(line, quirks=False):
    """Whether the original lives through the line and Staunch promises the same result; with `quirks`, what it
    promises under `compat_quirks`: then it differs nowhere on purpose."""
    text = line.decode("utf-8", "replace")
    head = text.split("|#")[0]
    key, *bits = head.split(":")
    if key.strip() in _INHERITED or key_of(line) in _INHERITED:
        return False
    return all(_bit_survivable(bit, quirks) for bit in bits)


def _bit_survivable(bit, quirks):
    fields = bit.split("|")
    if len(fields) < 2:
        return True
    value, kind = fields[0], fields[1]
    if quirks:
        # A rate that is a number, but does not begin with a digit or dot, ends the original.
        rate = fields[2][1:] if len(fields) > 2 and fields[2].startswith("@") else ""
        deadly = rate and not math.isnan(js_number(rate)) and rate[0] not in "-.0123456789"
        return not deadly and not (kind.strip(JS_SPACE) == "s" and value in _INHERITED)
    if len(fields) > 2 and fields[2].startswith("@"):
        plain = _PLAIN_RATE.fullmatch(fields[2])
        if plain and not 0 < float(plain[1]) <= 1:
            return False
        # What is no number there is a bad line on both sides; an odd number is where we differ.
        if not plain and not math.isnan(js_number(fields[2][1:])) and not fields[2].startswith("@-"):
            # An empty rate text is a number for Number(), and a bad line by the check of its first byte.
            return fields[2] == "@"
    number = js_number(value)
    if kind.strip(JS_SPACE) == "s":
        return value not in _INHERITED
    if math.isinf(number) or abs(number) > _MAGNITUDE_MAX:
        return False
    return not (kind != "ms" and kind.strip(JS_SPACE) == "ms" and number < 0)


class Traffic:
    """A source of rounds of datagrams. Keys come back, rest and come back again, so that idle series occur."""

    def __init__(self, rng, *, ascii_only=False, quirks=False):
        self._rng = rng
        self._quirks = quirks
        self._ascii_only = ascii_only
        words = ["web", "api", "db", "queue", "latency", "hits", "users", "cpu", "disk", "login", "A", "b2", "x"]
        self._keys = [".".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(60)]
        self._keys += ["", "0", "17", "a b", "a  b", "a / b", "a/b", "a-b", "a@b#c$d", "a*b{c}", "a%20b", "\\\"'q"]
        self._keys += [" gorets ", "a..b.", ".a", "-_.;=", "k;env=prod", "k,env=prod", "tab\there", "x\rcr"]
        self._keys += ["numStats", "statsd.own", "n" * 300, "packets_received.of.mine", "histo.small", "histo.large"]
        if not ascii_only:
            self._keys += ["caf\u00e9", "a\u00a0b", "\u65e5\u672c", "\U0001f600x", "\ufeffbom", "\u2003em"]

    def round(self):
        """The datagrams of one round: 40 to 120, each with 1 to 12 lines, most of them good."""
        rng = self._rng
        active = rng.sample(self._keys, k=rng.randint(6, 40))
        return [self._datagram(active) for _ in range(rng.randint(40, 120))]

    def _datagram(self, keys):
        rng = self._rng
        roll = rng.random()
        if roll < 0.01:
            return rng.choice([b"", b"\n", b"\n\n"])
        count = 200 if roll < 0.02 else rng.randint(1, 12) if roll < 0.4 else 1
        lines = [line for _ in range(count) if self._survivable(line := self._line(rng.choice(keys)))]
        glue = b"\r\n" if rng.random() < 0.05 else b"\n"
        text = glue.join(lines) + (b"\n" if rng.random() < 0.3 else b"")
        # The glue may have put a CR behind a type, and UDP has a limit.
        fits = len(text) < 60_000 and all(map(self._survivable, text.split(b"\n")))
        return text if fits else lines[0] if lines else b""

    def _survivable(self, line):
        return survivable(line, self._quirks)

    def _line(self, key):
        rng = self._rng
        roll = rng.random()
        if roll < 0.03:
            return rng.choice(self._odd_lines(key)).encode()
        bits = [self._bit() for _ in range(1 if roll < 0.85 else rng.randint(2, 4))]
        line = (key + ":" + ":".join(bits) + self._tags()).encode()
        if rng.random() < 0.04:
            line = self._damage(line)
        return line.replace(b"\n", b"")

    def _odd_lines(self, key):
        return [
            key, key + ":", key + "|c", key + ":1", key + "::1|c", key + ":1||c", key + ":1|c|", key + ":1|c||",
            key + ":1:2:3|c", key + ":1|c:2", key + ":1|c b:2|c", key + "|#env:prod:1|c", key + "#a:b:1|c",
            key + ":1|c|c:83c0a9", key + ":1|c|@0.5#a:b", key + ":1|c|T1656581400", "_e{5,4}:title|text", "_sc|name|0",
            key + ":3:4|ms|#a:b", "junk", " ", ":", "|", "|#", ":1|c", "m:1|c#a:b",
        ]  # fmt: skip

    def _bit(self):
        rng = self._rng
        kind = rng.choices(
            ["c", "ms", "g", "s", "h", "d", "m", "kv", "C", "", "c ", " ms", "ms\r", "g\r", "c\r", "s\r", " g "],
            [30, 30, 20, 12, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        )[0]
        if kind.strip() == "g":
            value = self._gauge()
        elif kind.strip() == "s":
            value = self._member()
        else:
            value = self._number()
        return f"{value}|{kind}{self._rate()}"

    def _number(self):
        rng = self._rng
        good = [
            lambda: str(rng.randint(0, 1000)),
            lambda: repr(rng.random() * 10 ** rng.randint(-8, 12)),
            lambda: f"{rng.uniform(0, 500):.{rng.randint(0, 3)}f}",
            lambda: str(rng.randint(-500, 500)),
            lambda: f"+{rng.randint(0, 9)}",
            lambda: rng.choice([".5", "5.", "1e3", "1E-2", "007", "-0", "0", " 5 ", "\t5", " ", "9007199254740993"]),
            lambda: rng.choice(["0x10", "0b11", "0o17", "1e-7", "123456789012345678901234", "1e21", "4e-10", "0.1"]),
        ]
        bad = ["", "-", "+", "--1", "1e", "4f", "inf", "NaN", "nan", "1,5", "1_000", "1;2", "-0x10", "abc", "=5", "1 2"]
        if rng.random() < 0.06:
            return rng.choice(bad)
        if self._quirks and rng.random() < 0.03:
            return rng.choice(["Infinity", "-Infinity", "+Infinity", "1e400", "-1e400", "1e308", "1e200", "-5"])
        return rng.choices(good, [30, 20, 20, 6, 4, 6, 4])[0]()

    def _gauge(self):
        rng = self._rng
        if rng.random() < 0.4:
            return f"{rng.choice('+-')}{rng.choice([1, 2, 5, 0.1, 2.5, 10, 333])}"
        if rng.random() < 0.15:
            return rng.choice(["0", " -2", " +2", "-0", "+0", "0.0"])
        return self._number()

    def _member(self):
        rng = self._rng
        members = ["", "0", "a", "a b", "765", " 7", "7", "x/y", "765.0", "A"]
        if not self._ascii_only:
            members += ["\u00e9", "e\u0301", "\ufffd"]
        return rng.choice(members) if rng.random() < 0.4 else str(rng.randint(0, 40))

    def _rate(self):
        rng = self._rng
        roll = rng.random()
        if roll < 0.72:
            return ""
        if roll < 0.95:
            return "|@" + rng.choice(["0.1", ".25", "1.", "1", "00.5", "0.3", "0.1 ", "0.1|x", "0.7", "0.01", "1.0"])
        if self._quirks and roll < 0.98:
            return "|@" + rng.choice(["0", "2", "0x1", "1e-1", "1e5", "00", "1.5", "0.5e1", "0b1", ".5 ", "3|x", "0 "])
        return "|" + rng.choice(["", "@", "@-1", "@abc", "@NaN", "@1.2.3", "0.1", "@x", "@0.5#a"])

    def _tags(self):
        rng = self._rng
        roll = rng.random()
        if roll < 0.75:
            return ""
        plain = ["env:prod", "dc:x", "b:2,a:1", "a:1,b:2", "a,b", "k:", ":v", "k=v"]
        odd = ["", ",", "a,,b", "k:v w", "k:a/b", "url:http://x/y", "a:b:c;d;e", "env:prod|@0.5", "env:prod|c:83c0a9"]
        odd += ["env:prod|#dc:x", "env:prod|T1656581400", "q:'\"", "u:\t"]
        return "|#" + rng.choice(plain if roll < 0.9 else odd)

    def _damage(self, line):
        """Changes one byte."""
        if not line:
            return line
        rng = self._rng
        at = rng.randrange(len(line))
        top = 127 if self._ascii_only else 255
        byte = rng.choice([rng.randint(0, top), ord(":"), ord("|"), ord("@"), ord("#"), 0, 32, 13])
        return line[:at] + bytes([byte]) + line[at + 1 :]
