//! Codes of configuration errors and warnings, with their pages for `staunch explain`.
//!
//! Codes are an interface: a code never changes its meaning. `C…` are for native files, `I…` for imports, `R…` for Riemann configs.

macro_rules! codes {
    ($($variant:ident $word:literal $title:literal cause $cause:literal example $example:literal mend $mend:literal)+) => {
        /// Kind of an error or warning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $title] $variant,)+ }

        impl Code {
            /// Every code, in the order of the docs.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The code as text: `C001`, `I001`, ….
            pub fn word(self) -> &'static str {
                match self { $(Code::$variant => $word,)+ }
            }

            /// The mistake in one line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)+ }
            }

            /// The reason in full sentences.
            pub fn cause(self) -> &'static str {
                match self { $(Code::$variant => $cause,)+ }
            }

            /// A part of a file with the mistake.
            pub fn example(self) -> &'static str {
                match self { $(Code::$variant => $example,)+ }
            }

            /// The correction.
            pub fn mend(self) -> &'static str {
                match self { $(Code::$variant => $mend,)+ }
            }
        }
    };
}

impl Code {
    /// True when a part of an original's file is missing in the result.
    pub fn loses_a_line(self) -> bool {
        matches!(
            self,
            Code::ImportUnknownKey | Code::UnknownBackend | Code::NotCarriedOver | Code::ImportSkipped
        )
    }
}

codes! {
    Syntax "C001" "The file is not valid TOML or YAML"
        cause "The file breaks a rule of its format at the marked place. A file name that ends in `.yaml`, `.yml` or `.json` selects YAML; every other file is TOML."
        example "[sources.app\ntype = \"statsd\""
        mend "Correct the marked place. Often the error is in the text before it: a quote or bracket that is not closed."
    UnknownKey "C002" "Unknown option"
        cause "The section has no option of this name. Unknown options are errors, because a misspelt option would otherwise be ignored without notice."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindwo = \"10s\""
        mend "Use the name in the hint, or look for the section in the reference (`docs/reference.md`)."
    WrongType "C003" "The value has the wrong type"
        cause "The option expects another type of value: a string, a number, true or false, a list or a table."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\npercentiles = 90"
        mend "Write the value as the message says. Durations and sizes are strings with a unit: \"10s\", \"64MiB\"."
    BadValue "C004" "Invalid value"
        cause "The value has the right type, but not the format of the option: a duration, a size, an address, or one of several keywords."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"10 parsecs\""
        mend "Use a format that the message names. Durations: 250ms, 10s, 5m, 1h, 7d. Sizes: 512B, 64KiB, 1GiB. Addresses: udp://127.0.0.1:8125, tcp://[::1]:2003, unix:///run/statsd.sock."
    OutOfRange "C005" "The value is out of range"
        cause "The value is below the minimum or above the maximum of the option. The message names the limit."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"0s\""
        mend "Choose a value within the limits in the message."
    MissingKey "C006" "A required option is missing"
        cause "The section needs this option, and the option has no default."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]"
        mend "Add the option that the message names."
    UnknownType "C007" "Unknown type of source, transform or output"
        cause "This version does not know the `type` of the section. If the hint names a type, the section is checked as that type; otherwise only its option names are checked."
        example "[outputs.carbon]\ntype = \"grahpite\""
        mend "Use one of the types in the message."
    DuplicateName "C008" "Two sections have the same name"
        cause "`from` can name a source or a transform, so a source and a transform must not share a name. Output names must be unique too, and so must the names made for several endpoints (`NAME/host:port`)."
        example "[sources.app]\ntype = \"statsd\"\n\n[transforms.app]\ntype = \"aggregate\""
        mend "Rename one of the two, and change the references to it."
    BadName "C009" "Invalid name"
        cause "Names of sources, transforms and outputs appear in self-metrics, in the API and in file names. They consist of 1 to 64 letters, digits, `_`, `-` and `.`, and begin with a letter or digit. An output with one endpoint may also have the name `NAME/host:port` of that endpoint, as an output with several endpoints is split into such names."
        example "[sources.\"my app\"]\ntype = \"statsd\""
        mend "Rename it, for example with `_` instead of the space."
    NeedsAggregate "C010" "The output needs aggregates"
        cause "This output writes the results of an aggregation at the end of each window, but its `from` names a source. A sample has no value to store before it is aggregated."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"app\"]\nto = [\"tcp://10.0.0.5:2003\"]"
        mend "Add a transform of type `aggregate` with the source in its `from`, and name the transform in the output's `from`."
    NeedsSource "C011" "The section cannot read what the transform gives"
        cause "Aggregations take samples, `event_file` takes events, and a cluster (`sharding`) takes StatsD lines as they were sent. Only sources give these, but this `from` names a transform: an aggregation gives aggregates and points, a relay gives points."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\n[outputs.events]\ntype = \"event_file\"\nfrom = [\"stats\"]"
        mend "Name a source in `from` that gives what the section takes. Send points of a transform to an output of type `graphite` or `graphite_file`, or through a relay, which can also distribute them over endpoints."
    Cycle "C012" "The transform feeds itself"
        cause "This transform reads from itself, directly or through other transforms: its records would return to it without end."
        example "[transforms.a]\ntype = \"aggregate\"\nfrom = [\"b\"]\n\n[transforms.b]\ntype = \"aggregate\"\nfrom = [\"a\"]"
        mend "Change `from` of one of them to a source."
    MixedDialects "C013" "The sources of an aggregation parse lines differently"
        cause "An aggregation finds its series by the bytes of their names. With different dialects or parser options, the same text would have two meanings."
        example "[sources.a]\ntype = \"statsd\"\ndialect = \"etsy\"\n\n[sources.b]\ntype = \"statsd\"\ndialect = \"union\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"a\", \"b\"]"
        mend "Give the sources the same options, or use one aggregation for each; several aggregations may feed one output."
    UnknownReference "C014" "Unknown name in `from`"
        cause "A `from` names a section that the file does not define, or one that gives no records: only sources and transforms do."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stat\"]"
        mend "Use one of the names in the message, or add the missing section."
    Loop "C015" "An output sends to a listener of the same daemon"
        cause "Records would be sent to the daemon's own source, and from there again, in an endless loop."
        example "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:8125\"]"
        mend "Send to another address, or listen on another one."
    AddressTaken "C016" "Two listeners share one address"
        cause "Only one listener can use a port (or a socket's path). Two addresses also collide if one of them is the wildcard `0.0.0.0` or `[::]` with the same port."
        example "[sources.a]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\n[sources.b]\ntype = \"statsd\"\nlisten = [\"udp://0.0.0.0:8125\"]"
        mend "Give one of them another port, or merge the two sources."
    Unused "C017" "A source or transform is not used"
        cause "No `from` names this source or transform, so its records end as `filtered`. This is a warning: the rest works."
        example "[sources.app]\ntype = \"statsd\""
        mend "Name it in the `from` of a transform or output, or remove it."
    FileShared "C019" "Two outputs write to one file"
        cause "Each output writes and rotates its file alone. Two writers would mix their lines, and each would rotate the other's file."
        example "[outputs.points]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n\n[outputs.events]\ntype = \"event_file\"\nfrom = [\"app\"]\npath = \"points\""
        mend "Give each output its own `path`."
    Empty "C020" "A list is empty"
        cause "The option needs at least one entry: a source without a listener, or an output without a `from`, would do nothing."
        example "[sources.app]\ntype = \"statsd\"\nlisten = []"
        mend "Add an entry, or remove the section."
    Repeated "C021" "A key or entry is repeated"
        cause "A key or list entry appears twice. The second one would overwrite the first, or do its work twice."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nfrom = [\"app\"]"
        mend "Remove one of the two."
    NoEffect "C022" "The option has no effect here"
        cause "Because of another option of the section, such as the dialect or the namespace, this option does nothing. This is a warning: the option is ignored."
        example "[sources.app]\ntype = \"statsd\"\ndialect = \"etsy\"\ngauge_sign = \"absolute\""
        mend "Remove the option, or change the one that the message names."
    NoSource "C023" "The file defines no source"
        cause "Without a source the daemon receives nothing. The built-in defaults apply only if no file is given; an empty file does not select them."
        example "[http]\nlisten = \"127.0.0.1:8680\""
        mend "Add a source: `[sources.app]` with `type = \"statsd\"`."
    TooMany "C024" "Too many sections or entries"
        cause "A file may define up to 1000 sources, 1000 transforms and 1000 outputs (an output counts once for each of its endpoints). Lists have limits of their own, which the message names."
        example "[outputs.copy]\nto = [\"udp://10.0.0.1:8125\", …]"
        mend "Split the work between several daemons."
    Verbatim "C025" "An option needs parsed lines, but the output is verbatim"
        cause "With `mode = \"verbatim\"` packets are forwarded byte for byte and not parsed. Filters, sampling, changes of names and tags, clusters, and aggregates as samples all need parsed lines."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\"]\nmode = \"verbatim\"\nallow = [\"api.*\"]"
        mend "Remove `mode`, or set `repack` (lines are packed into new packets) or `lines` (one packet for each line). Or remove the option, so that packets stay unchanged."
    NoCluster "C026" "The endpoints do not form a cluster"
        cause "An output with `sharding` assigns each key to one of its endpoints. The labels must be unique and as many as the endpoints. Each shard, from 0 up, must be assigned to exactly one endpoint. The members of a relay's cluster are outputs with the relay in their `from`, at least as many as each point has copies."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.nodes]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\", \"udp://10.0.0.6:8125\"]\nsharding = \"jump\"\nshards = { \"10.0.0.5:8125\" = \"0-7\", \"10.0.0.6:8125\" = \"9-15\" }"
        mend "Correct the option that the message names. `staunch check --keys FILE` shows which endpoint owns each of your keys."
    AckWhen "C027" "The source cannot satisfy `ack_when`"
        cause "`ack_when` sets when a client gets an acknowledgement and may forget a line. `safe` needs a queue on disk at every output that reads from the source; `delivered` needs endpoints that confirm delivery. Both forbid an aggregation in between, because an aggregate is in memory until its window ends. Only connections can carry acknowledgements."
        example "[sources.app]\ntype = \"statsd\"\nack_when = \"delivered\"\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\"]"
        mend "Change the option that the message names, or choose a weaker condition: `accepted` is always possible on connections."
    WrongRecords "C028" "The section cannot read this kind of record"
        cause "A source of type `graphite` gives points, which are forwarded unchanged. Aggregations take StatsD samples; outputs such as `console` take the results of an aggregation; clusters, filters and changes in `udp`, `tcp` and `unix` outputs parse StatsD lines. A relay takes points, and a source of type `statsd` gives samples."
        example "[sources.in]\ntype = \"graphite\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"in\"]"
        mend "For points, use an output of type `graphite` or `graphite_file`, or one of type `udp`, `tcp` or `unix` that forwards lines unchanged. To distribute points over endpoints, use a relay with a cluster. Put an aggregation between samples and a relay."
    BadRule "C029" "Invalid rule"
        cause "A relay's rule is a rewrite if it has `into`, an aggregation rule if it has `compute`, and otherwise a route. It may have the options of one of these only. An aggregation rule needs `every`, a longer `expire`, and something to compute. The blackhole is not a cluster, so it must be the only target."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.']\ninto = 'system.'\nto = [\"storage\"]"
        mend "Write two rules, in the order in which they are to apply."
    BadPattern "C030" "Invalid regular expression"
        cause "The expression breaks a rule of regular expressions, or is too large after it is compiled. Letters and digits need no escaping, but `.`, `[`, `(`, `|` and similar characters do."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.(cpu|mem']\nto = [\"storage\"]"
        mend "Correct the part that the message names. Escape a special character with `\\`; in TOML, `'…'` keeps every `\\` as it is."
    IdleRule "C031" "The rule has no effect, or not the intended one"
        cause "No name reaches this rule, or it neither sends nor validates, or it stops without sending, or an aggregation rule reads its own results. This is a warning: the rest works."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nto = \"blackhole\"\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.']\nto = \"blackhole\""
        mend "Do what the hint says, or remove the rule."

    HttpOpen "C033" "The HTTP server is reachable from a network"
        cause "Without a token, anybody who can connect to the address can read the names of all series and all metrics of the daemon. Without TLS, the replies and the token can be read in transit. The message says what is missing. This is a warning: the server runs."
        example "[http]\nlisten = \"0.0.0.0:8680\""
        mend "Set `token_file`, so that requests need a token, and `tls`, so that the traffic is encrypted. Or listen on a loopback address behind your own proxy."
    ManagementOpen "C034" "A management port is reachable from a network"
        cause "The port has no authentication: anybody who can connect to the address can delete series and change the reply to `health`. In configs of node's statsd and Net::Statsd::Server, it listens on all addresses unless `mgmt_address` is set. This is a warning: the port is open."
        example "[management]\nlisten = \"0.0.0.0:8126\""
        mend "Set `read_only = true`, or listen on a loopback address. In a config of the originals, set `mgmt_address: '127.0.0.1'`. Or start with `--management 127.0.0.1:8126` or `--management off`."
    TokenOpen "C035" "Other users can read the token"
        cause "Users other than its owner can read the file of `http.token_file`, and anybody with the token can read everything over HTTP. This is a warning: the token is in use."
        example "[http]\ntoken_file = \"/etc/staunch/http.token\""
        mend "`chmod 600` the file, and make the daemon's user its owner. If others may have read it, write a new token; a reload reads the file again."
    CertificateDates "C036" "A certificate is expired or not valid yet"
        cause "The certificate of a listener, or the client certificate of an output, is expired or not valid yet. Peers that check the dates reject it. This is a warning: connections are still made."
        example "[sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://0.0.0.0:2003\"]\ntls = { cert = \"/etc/staunch/points.pem\" }"
        mend "Renew the certificate and reload with SIGHUP, which reads the file again. If it is not valid yet, check this machine's clock. `staunch_source_certificate_expires_in_seconds` and the similar metrics give an early warning."
    DiskTooSmall "C037" "The disk has no room for its queues"
        cause "Each queue on disk may grow to `queue.max_bytes`. Their sum is more than the free space on the disk of the data directory, so an outage fills the disk before the queues are full; records then stay in memory. This is a warning: the rest works."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://10.0.0.5:2003\"]\nqueue = { kind = \"disk\", max_bytes = \"1TiB\" }"
        mend "Lower `queue.max_bytes` to bytes per second times the longest outage to survive, or move `data_dir` to a larger disk."
    RingCollision "C038" "Members of a cluster have the same positions on the hash ring"
        cause "The rings of `carbon_ch`, `python_carbon_ch` and `python_mmh3_ch` place a member by its host or its instance, never by its port; the ring of `python_fnv1a_ch` uses the instance only. Members that are equal in this have the same positions on the ring: the first one gets every name, the others none. This is a warning: the originals behave the same."
        example "[sources.lines]\ntype = \"graphite\"\n\n[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\nclusters.storage = { type = \"carbon_ch\", to = [\"carbon\"] }\nrules = [{ to = \"storage\" }]\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"relay\"]\nto = [\"tcp://127.0.0.1:12003\", \"tcp://127.0.0.1:12103\"]"
        mend "Give each member an instance: `to = [\"carbon/127.0.0.1:12003=a\", \"carbon/127.0.0.1:12103=b\"]`. Or use a ring that includes ports, such as `fnv1a_ch`."
    Variable "C039" "A variable has no value, or the reference to it is not valid"
        cause "Strings of a native file may refer to variables: `${NAME}` and `${NAME:?MESSAGE}` need an environment variable that is set, `${NAME:-DEFAULT}` has a default, and `${file:PATH}` needs a file that can be read. References are replaced after the file is parsed. Messages show the name of a variable, never its value."
        example "[sources.app]\ntype = \"statsd\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://${CARBON_HOST}:2003\"]"
        mend "Set the variable for the command that reads the file (`Environment=` of a systemd unit), or give a default. For a dollar before a brace, write `$${`."
    UnreadEvents "C040" "No output takes the events of a source"
        cause "DogStatsD clients send events and service checks beside their metrics. No output of type `event_file` reads from this source, and no output that forwards its packets, so its events and checks end as `filtered`. This is not a warning, because most clients send none: `staunch check` and the banner print one line about it. The dialects `etsy` and `perl` have no events, so they get no such line."
        example "[sources.app]\ntype = \"statsd\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://10.0.0.5:2003\"]"
        mend "Nothing to do if your clients send no events. Otherwise add `[outputs.events]` with `type = \"event_file\"` and the source in its `from`."
    AckedDropped "C041" "A full queue drops lines that clients rely on"
        cause "With `ack_when = \"safe\"` a client may forget a line once it is in a queue on disk; with `\"delivered\"`, once it has arrived. A queue with `when_full = \"wait\"` (the default) or `\"drop_oldest\"` drops its oldest lines when it is full: with `safe`, lines that were acknowledged; with `delivered`, lines that were not, so every client gets `err` and has to send its lines again. This is a warning: dropped lines are counted."
        example "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:8125\"]\nack_when = \"safe\"\n\n[outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://10.0.0.5:8125\"]\nqueue = { kind = \"disk\" }"
        mend "Set `when_full = \"block\"` in the queue of each output that reads from the source: its clients then wait until there is room, and nothing is dropped."
    FinerThanFiles "C042" "A flush is finer than the files that store it"
        cause "An aggregation flushes more often than the finest archive of a whisper file has points, so each flush overwrites the one before it in the same point. Counters then show a part of what happened. With `schemas_file` the archives are known only when the daemon runs, and there is no warning."
        example "[sources.app]\ntype = \"statsd\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\n[outputs.store]\ntype = \"whisper\"\nfrom = [\"stats\"]"
        mend "Give the output a first archive with the step of the window: `schemas = [{ pattern = \"\", retentions = \"1s:6h,10s:1d,1m:7d\" }]`. Or flush less often."

    NotAFolder "C043" "The path is not a folder"
        cause "The daemon creates `data_dir` and the `path` of an output of type `whisper` as folders. At this path, or above it, is something else: a file, a device, or a link to nothing."
        example "data_dir = \"/etc/hostname\""
        mend "Use the path of a folder, or of one that can be created. The message names the path that is in the way."

    LocalAddress "C044" "The address of a mail has no domain"
        cause "An address without `@` and a domain is completed with the name of the machine that sends the mail. Servers elsewhere reject such an address, or deliver to nobody. This is a warning."
        example "[sources.riemann]\ntype = \"riemann\"\n\n[outputs.mail]\ntype = \"email\"\nfrom = [\"riemann\"]\nsmtp = \"smtp://127.0.0.1\"\nrecipients = [\"ops\"]"
        mend "Write the whole address: `ops@example.org`. If the machine's own mail server delivers to a user of it, nothing is to be done."

    PasswordClear "C045" "A password is sent in clear text"
        cause "The output logs in to a mail server, the connection is not encrypted, and the server is not at a loopback address. Everybody on the way can read the password and the mails. This is a warning."
        example "[sources.riemann]\ntype = \"riemann\"\n\n[outputs.mail]\ntype = \"email\"\nfrom = [\"riemann\"]\nsmtp = \"smtp://mail.example.org:587\"\nuser = \"alerts\"\npassword = \"secret\"\nrecipients = [\"ops@example.org\"]"
        mend "Write `starttls = true`, or `smtps://` for a server with TLS from the beginning."

    UnsupportedJavascript "I001" "This JavaScript cannot be evaluated"
        cause "The original's file is a JavaScript expression. Literals, `process.env`, simple operators and a few functions are supported; loops, other function calls and the like are not."
        example "{ port: ports.map(p => p + 1)[0] }"
        mend "Write the value itself, or evaluate the file once with node and use the resulting JSON."
    ImportUnknownKey "I002" "The original has no option of this name"
        cause "The original ignores options that it does not know, so this one never had an effect. Often it is a misspelling."
        example "{ flushInteval: 10000 }"
        mend "Correct the name if the hint fits; otherwise remove the line."
    UnknownBackend "I003" "Unknown backend"
        cause "The file loads a backend module that Staunch has no counterpart for."
        example "{ backends: [\"statsd-librato-backend\"] }"
        mend "Remove it, or use an existing output instead; `--ignore-unknown-backends` ignores it."
    NotCarriedOver "I004" "The option has no counterpart"
        cause "The option exists in the original, but Staunch has no counterpart, so the native file does not contain it."
        example "{ title: \"statsd on web1\" }\n\n[cache]\nMIN_TIMESTAMP_RESOLUTION = 10"
        mend "Nothing to do if you do not need the option. Otherwise use the replacement in the message."
    ImportBadValue "I005" "The original does not work with this value"
        cause "The value has the right type, but is outside the range of the option, or the original gives a useless result with it."
        example "{ percentThreshold: [101] }"
        mend "Use one of the values in the message."
    ImportBadType "I006" "The value has the wrong type"
        cause "The option expects another type of value. Numbers in strings (\"8125\", as they come from environment variables) are converted; this value cannot be converted."
        example "{ port: [\"8125\"] }"
        mend "Write the value as the message says."
    ImportNoEffect "I007" "The option has no effect"
        cause "The original ignores the option, because it is obsolete, in the wrong place, or overridden by another one. Or the option changes the original and nothing here: no data depends on it."
        example "{ legacyNamespace: false }\n\n[cache]\nCACHE_WRITE_STRATEGY = sorted"
        mend "Nothing to do. If the option is in the wrong place, move it to the place in the hint."
    ImportSyntax "I008" "The file cannot be parsed"
        cause "The text breaks a rule of the original's file format at the marked place."
        example "{ port: 8125 backends: [] }"
        mend "Correct the marked place. Often the error is in the text before it."
    UnknownCluster "I009" "Unknown cluster"
        cause "A rule of a relay names a cluster that no earlier statement defines. Statements are read from top to bottom, and included files at the place of their `include`."
        example "match ^sys\\. send to storage;\ncluster storage forward 10.0.0.5;"
        mend "Correct the name, or define the cluster before the rule."
    ServerShared "I010" "A server has conflicting definitions"
        cause "Clusters that name the same host, port and protocol share one queue and one connection, so the server can have only one instance, one encoding and one transport. A member of an `any_of` or `failover` cluster passes its queue on to the others, so an earlier cluster must not name it."
        example "cluster a forward 10.0.0.5;\ncluster b forward 10.0.0.5=x;"
        mend "Use the same definition in both places, or another port for one of the two."
    BadExpression "I011" "Invalid regular expression"
        cause "The expression breaks a rule of regular expressions at the marked place, or is too large after it is compiled."
        example "match ^sys\\.(cpu|mem send to storage;"
        mend "Correct the marked place. Escape a special character with `\\`; within quotes, write every `\\` twice."
    ReadsTwoWays "I012" "Builds of the original disagree on this expression"
        cause "carbon-c-relay is built with the C library's regular expressions or with PCRE2, and they disagree on this construct. This is a warning. The message says how Staunch reads it."
        example "rewrite ^host\\d+\\. into host.;"
        mend "Use the expression in the hint, which has the same meaning in every build."
    IncludeUnread "I013" "A file cannot be read"
        cause "The configuration file, or an included one, does not exist, cannot be opened, is not UTF-8, or includes itself."
        example "include /etc/relay.d/clusters.conf;"
        mend "Correct the path or the file. The message has the system's error."
    Unreachable "I014" "No name reaches this rule"
        cause "An earlier `match *` rule with `stop` matches every name. This is a warning."
        example "match * send to storage stop;\nmatch ^sys\\. send to other;"
        mend "Move the rule up, or remove the `stop`."
    ImportDeprecated "I015" "Deprecated syntax"
        cause "The original still accepts it, and announces that a later version will not. This is a warning."
        example "send statistics to storage;"
        mend "Use the syntax in the hint."
    Backtracks "I016" "The expression needs backtracking"
        cause "Look-around, atomic groups and back references cannot be matched in time that is linear in the name's length. Such a search is slower. It stops at a limit for names that have too many ways to match or are longer than 2048 bytes. Such a name counts as not matching, and a metric counts it. Names without the literal texts of the expression are not searched. This is a warning."
        example "match \"^servers\\\\.(?!test)\" send to storage;"
        mend "Avoid these constructs where possible: match the excluded names in an earlier rule that stops."
    ListensEverywhere "I017" "The listener is open on every interface"
        cause "carbon listens on 0.0.0.0 if carbon.conf sets nothing else, and so does the imported config. All other listeners of Staunch use loopback by default. This is a warning."
        example "[relay]\nLINE_RECEIVER_PORT = 2013"
        mend "Set the interface in carbon.conf, or `tcp://127.0.0.1:2013` in `listen` of the native file."
    ImportSkipped "I018" "A section or rule is skipped"
        cause "carbon skips a section of a rule file that it cannot use, and destinations of relay-rules.conf that are not in DESTINATIONS. Staunch skips the same ones, so names get the rules of a later section, or are not sent there. This is a warning; `staunch import` prints the native file without them, and its exit code is 1."
        example "[web]\npattern = ^web\\.\nretentions = 10s:6h,15s:7d"
        mend "Correct the marked place, or remove the section."
    SharedFiles "I019" "Two instances write to the same files"
        cause "Several sections of carbon.conf store points in one folder, and not all of them have `WHISPER_LOCK_WRITES = True`. Without locks one Staunch writes to a folder. An instance that starts later takes points into its queue, and does not write them to files as long as the first one runs. This is a warning."
        example "[cache]\nLOCAL_DATA_DIR = /srv/whisper\n\n[cache:b]\nLINE_RECEIVER_PORT = 2103"
        mend "Run one instance, which uses several cores, and send all points to it. Or set `WHISPER_LOCK_WRITES = True` for all instances. Or give each its own `LOCAL_DATA_DIR`."
    RiemannConfig "R001" "A mistake in a Riemann config"
        cause "The config, or a file that it loads, cannot be evaluated: its syntax is wrong, a name does not exist, or a function refuses its arguments. Names are checked in the whole file, also in functions that no event has called yet."
        example "(streams\n  (wher (service \"cpu\") prn))"
        mend "Correct the marked place. The hint has the nearest name that exists."
    RiemannNote "R002" "Something in a Riemann config has no effect, or another one than in Riemann"
        cause "The config is accepted. An option or a call does nothing in Staunch, or Riemann would ignore it as well. This is a warning."
        example "(tcp-server {:prot 5555})"
        mend "Correct the option, or remove the call. The message says what to use in its place."
    RiemannOutput "R003" "A Riemann config sends to an output that is not there"
        cause "`(staunch/output \"NAME\")` is a stream to the output NAME of the native config, and there is none of that name, or it does not take events."
        example "(streams (staunch/output \"alert\"))"
        mend "Use the name of an output of the native config that takes events. An imported config has no native outputs: write a native one with a transform of type `streams`."
}

impl Code {
    /// The code with a name such as `C014`, in any case.
    pub fn of_word(word: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.word().eq_ignore_ascii_case(word))
    }

    /// The page of `staunch explain`: title, cause, example, correction.
    pub fn explain(self) -> String {
        let example: String = self.example().lines().map(|line| format!("    {line}\n")).collect();
        format!("{}: {}\n\n{}\n\n{example}\n{}\n", self.word(), self.title(), self.cause(), self.mend())
    }
}

#[test]
fn codes_are_distinct_and_found_by_their_word() {
    for code in Code::ALL {
        assert_eq!(Code::of_word(&code.word().to_lowercase()), Some(*code), "{} is given twice", code.word());
        assert!(!code.title().ends_with('.') && code.cause().ends_with('.') && code.mend().ends_with('.'));
        assert!(code.explain().contains(code.title()));
    }
    assert_eq!(Code::of_word("C999"), None);
}
