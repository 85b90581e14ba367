"""Random configurations of carbon's relay and aggregator, with rule files, and names for them."""

import pathlib

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
WORDS = ["web", "db", "app", "host1", "host07", "cpu", "load", "Hits", "errors", "p-1", "a_b", "é", "x", "all", "sum"]
TAGS = ["env=prod", "dc=eu", "host=web1", "a=b"]
# What names are searched for: anchors, groups, classes, alternatives, look-around, letters of both cases.
EXPRESSIONS = [r"^web\.", r"\.cpu$", r"load", r"HOST\d+", r"^(web|db)\.", r"^[^.]+\.[a-z_]+", r"x|y", r"\.(hits|errors)$",
               r"host\d{1,2}\.", r"^app\.(?!cpu)", r"(?<=web)\.cpu", r"[\w-]+\.sum", r"^[^;]*$", r";env=prod", r"(?i)HITS",
               r"\.(?P<last>[^.]+)$", r"(\w)\1", r"[[:alpha:]]", r"é"]
REPLACED = [(r"^web\.", "www."), (r"(\d+)", r"<\1>"), (r"host(\d)", r"h\g<1>0"), (r"\.(?P<last>[^.;]+)$", r".\g<last>.\g<last>"),
            (r"_", ""), (r"^", "pre."), (r"$", ".post"), (r"(?i)(HITS)", r"\1s"), (r"a|b", "ab"), (r"^(\w+)\.(\w+)", r"\2.\1"),
            (r"l*", "-"), (r"(?!x)a", "A"), (r"\.\.+", ".")]
METHODS = ["sum", "avg", "min", "max", "count", "p50", "p75", "p80", "p90", "p95", "p99", "p999"]
RELAY_METHODS = ["rules", "consistent-hashing", "aggregated-consistent-hashing", "fast-hashing", "fast-aggregated-hashing"]
INPUTS = ["<a>.*.<c>", "web.<<rest>>", "*.cpu", "<a>.host*.<c>", "<<all>>", "app.<b>.(cpu|load)", "<a>.(host\\d+|x).<c>",
          "(web|db).<b>.<c>", "w*.<b>", "*.*.*", "db.<b>.<c>", "<a>-*.<b>", "x|web.<b>"]


class Files:
    """A folder with carbon.conf and the files that it names."""

    def __init__(self, chance, folder, port, free_port):
        self.folder = pathlib.Path(folder)
        self.program = chance.choice(["relay", "relay", "aggregator"])
        self.instance = chance.choice(["a", "a", "b"])
        # Not 1: points of the next second would be too early for such windows.
        self.frequency = chance.choice([2, 3])
        self.port = port
        self.destinations = self._destinations(chance, free_port)
        self.normalized = self.program == "relay" and chance.random() < 0.3
        self.method = "consistent-hashing" if self.program == "aggregator" else chance.choice(RELAY_METHODS)
        self.protocol = chance.choice(["pickle", "line", None])
        self._write(chance)
        # Letters beyond ASCII are none for `\\w` here (docs/migrate-carbon.md).
        self.is_ascii = any("\\w" in path.read_text() for path in self.folder.glob("*.conf"))

    @property
    def section(self):
        return self.program if self.instance == "a" else f"{self.program}:{self.instance}"

    @staticmethod
    def _destinations(chance, free_port):
        """Those of one host have instances, which a ring needs to tell them apart."""
        found = []
        for number in range(chance.randint(1, 5)):
            host = chance.choice(HOSTS)
            alone = all(host != other for other, _, _ in found)
            instance = None if alone and chance.random() < 0.4 else f"{chance.choice('abc')}{number}"
            found.append((host, free_port(), instance))
        return found

    @staticmethod
    def _text(destination):
        host, port, instance = destination
        return f"{host}:{port}" + (f":{instance}" if instance else "")

    def _write(self, chance):
        separator = chance.choice([", ", ",", " ,\n    "])
        conf = {
            "LINE_RECEIVER_INTERFACE": "127.0.0.1",
            "LINE_RECEIVER_PORT": self.port,
            "PICKLE_RECEIVER_PORT": 0,
            "DESTINATIONS": separator.join(map(self._text, self.destinations)),
            "MAX_QUEUE_SIZE": 100_000,
        }
        if self.protocol:
            conf["DESTINATION_PROTOCOL"] = self.protocol
        if self.program == "relay" or chance.random() < 0.2:
            conf["RELAY_METHOD"] = self.method
        if chance.random() < 0.5:
            conf["REPLICATION_FACTOR"] = chance.randint(1, 3)
        if chance.random() < 0.5:
            conf["DIVERSE_REPLICAS"] = chance.choice(["True", "False"])
        if chance.random() < 0.4:
            conf["ROUTER_HASH_TYPE"] = chance.choice(["carbon_ch", "fnv1a_ch", "mmh3_ch"])
        if self.normalized:
            conf["TAG_RELAY_NORMALIZED"] = "True"
        if self.program == "aggregator" and chance.random() < 0.5:
            conf["FORWARD_ALL"] = chance.choice(["True", "False"])
        if chance.random() < 0.3:
            conf["USE_WHITELIST"] = "True"
            self._list(chance, "blacklist.conf")
            self._list(chance, "whitelist.conf")
        self._sections(chance, conf)
        self._rules(chance)

    def _sections(self, chance, conf):
        """What an instance has overrides what all have; other sections are there as well."""
        lines = ["[cache]", "LINE_RECEIVER_PORT = 2003", "# nothing", f"[{self.program}]"]
        own = {}
        if self.instance != "a" or chance.random() < 0.3:
            own = {key: conf[key] for key in chance.sample(sorted(conf), chance.randint(1, len(conf)))}
        for key, value in conf.items():
            if key not in own:
                lines.append(f"{key} = {value}")
            elif chance.random() < 0.5:
                # Overridden, and so without effect.
                lines.append(f"{key} = {value}" if key == "DESTINATIONS" else f"{key} = {value}  ".rstrip())
        if own:
            lines += ["", f"[{self.program}:{self.instance}]", *(f"{key} = {value}" for key, value in own.items())]
        self._put("carbon.conf", lines)

    def _put(self, name, lines):
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def _list(self, chance, name):
        if chance.random() < 0.8:
            self._put(name, ["# names", "", *chance.sample(EXPRESSIONS, chance.randint(0, 3))])

    def _rules(self, chance):
        lines = []
        for number in range(chance.randint(0, 5)):
            lines += [f"[rule {number}]", f"pattern = {chance.choice(EXPRESSIONS)}"]
            some = chance.sample(self.destinations, chance.randint(1, len(self.destinations)))
            others = [("127.0.0.9", 2004, None)] if chance.random() < 0.2 else []
            lines.append("destinations = " + ", ".join(map(self._text, others + some)))
            if chance.random() < 0.5:
                lines.append(f"continue = {chance.choice(['true', 'True', 'false'])}")
        some = chance.sample(self.destinations, chance.randint(1, len(self.destinations)))
        lines += ["[default]", "default = true", "destinations = " + ",".join(map(self._text, some))]
        self._put("relay-rules.conf", lines)
        pairs = [f"{pattern} = {into}" for pattern, into in chance.sample(REPLACED, chance.randint(0, 4))]
        cut = chance.randint(0, len(pairs))
        self._put("rewrite-rules.conf", ["[pre]", *pairs[:cut], "[post]", *pairs[cut:]])
        self._put("aggregation-rules.conf", [self._aggregation(chance) for _ in range(chance.randint(0, 4))])
        # Carbon does not start without it, whatever it does.
        self._put("storage-schemas.conf", [])

    def _aggregation(self, chance):
        given = chance.choice(INPUTS)
        fields = [field for field in ("<a>", "<b>", "<c>") if field in given.replace("<<", "").replace(">>", "")]
        fields += [field for field, there in (("<rest>", "<<rest>>"), ("<all>", "<<all>>")) if there in given]
        method = chance.choice(METHODS)
        # A name tells its method, as two of one name would compute what came first.
        output = ".".join([f"agg{method}", *chance.sample(fields, chance.randint(0, len(fields)))])
        if given == "<<all>>" and chance.random() < 0.7:
            # In the place of what came: the only rule of it, or the name would have two methods.
            output, method = "<all>", "max"
        if "|" in given and given.startswith("x"):
            output = f"agg{method}.alternatives"
        return f"{output} ({self.frequency}) = {method} {given}"


def name(chance, files):
    """A name, with tags now and then, in an order that carbon keeps or puts right."""
    words = [word for word in WORDS if word.isascii() or not files.is_ascii]
    text = ".".join(chance.choices(words, k=chance.randint(1, 4)))
    if files.program == "relay" and not files.normalized and chance.random() < 0.05:
        text = chance.choice([f".{text}", f"{text}.", text.replace(".", "..")])
    if files.program == "relay" and chance.random() < 0.2:
        text = ";".join([text, *chance.sample(TAGS, chance.randint(1, 3))])
    return text
