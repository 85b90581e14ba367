//! Every kind of mistake a configuration can have, with its page for `staunch explain`.
//!
//! Codes are API: a code is never given a second meaning. `C…` are of native files, `I…` of imports.

macro_rules! codes {
    ($($variant:ident $word:literal $title:literal cause $cause:literal example $example:literal mend $mend:literal)+) => {
        /// Kind of a mistake or warning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $title] $variant,)+ }

        impl Code {
            /// Every code, in the order of the docs.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The word that names it: `C001`, `I001`, ….
            pub fn word(self) -> &'static str {
                match self { $(Code::$variant => $word,)+ }
            }

            /// One line: what is wrong.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)+ }
            }

            /// Why it is a mistake, in full sentences.
            pub fn cause(self) -> &'static str {
                match self { $(Code::$variant => $cause,)+ }
            }

            /// A piece of a file that has it.
            pub fn example(self) -> &'static str {
                match self { $(Code::$variant => $example,)+ }
            }

            /// What to do.
            pub fn mend(self) -> &'static str {
                match self { $(Code::$variant => $mend,)+ }
            }
        }
    };
}

impl Code {
    /// True when something of an original's file is missing from what was made of it.
    pub fn loses_a_line(self) -> bool {
        matches!(self, Code::ImportUnknownKey | Code::UnknownBackend | Code::NotCarriedOver)
    }
}

codes! {
    Syntax "C001" "The file is not TOML or YAML"
        cause "The text breaks a rule of its format at the marked place. A file that ends in `.yaml`, `.yml` or `.json` is read as YAML, every other one as TOML."
        example "[sources.app\ntype = \"statsd\""
        mend "Correct the marked place; what stands before it is often the cause (a quote or bracket that was not closed)."
    UnknownKey "C002" "No such option here"
        cause "The section has no option of this name. Unknown options are mistakes because a misspelt one would otherwise be ignored in silence."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindwo = \"10s\""
        mend "Use the name that the hint offers, or look the section up in the reference (`docs/reference.md`)."
    WrongType "C003" "The value has the wrong type"
        cause "The option wants another type of value: a text, a number, true or false, a list or a table."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\npercentiles = 90"
        mend "Write the value as the message says. Durations and sizes are texts with a unit: \"10s\", \"64MiB\"."
    BadValue "C004" "The value cannot be understood"
        cause "The value has the right type, but its text is not of the form that the option wants: a duration, a size, an address, or one of a few words."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"10 parsecs\""
        mend "Write one of the forms that the message names. Durations: 250ms, 10s, 5m, 1h, 7d. Sizes: 512B, 64KiB, 1GiB. Addresses: udp://127.0.0.1:8125, tcp://[::1]:2003, unix:///run/statsd.sock."
    OutOfRange "C005" "The value is outside its limits"
        cause "The value is smaller or larger than the option can work with. The message names the limit."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"0s\""
        mend "Choose a value within the limits of the message."
    MissingKey "C006" "An option that must be set is missing"
        cause "The section cannot work without this option, and there is no sensible default for it."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]"
        mend "Add the option that the message names."
    UnknownType "C007" "No such type of source, transform or output"
        cause "The `type` of the section is none that this version knows. The rest of the section is checked as the type of the hint; without a hint only for options that no type has."
        example "[outputs.carbon]\ntype = \"grahpite\""
        mend "Use one of the types that the message lists."
    DuplicateName "C008" "Two things have one name"
        cause "`from` can name a source or a transform, so these two cannot share a name. Outputs need distinct names too, those made for several endpoints (`NAME/host:port`) included."
        example "[sources.app]\ntype = \"statsd\"\n\n[transforms.app]\ntype = \"aggregate\""
        mend "Rename one of the two, and the places that refer to it."
    BadName "C009" "The name cannot be used"
        cause "Names of sources, transforms and outputs appear in self-metrics, in the API and in file names. They have 1 to 64 characters out of letters, digits, `_`, `-` and `.`, and begin with a letter or digit. An output with one endpoint may also be called `NAME/host:port` after it, as an output with several is split."
        example "[sources.\"my app\"]\ntype = \"statsd\""
        mend "Rename it, for example with `_` in place of the blank."
    NeedsAggregate "C010" "The output needs aggregates"
        cause "This output writes what an aggregation gives at the end of each window, but its `from` names a source. Samples have no value of their own to store until they are aggregated."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"app\"]\nto = [\"tcp://10.0.0.5:2003\"]"
        mend "Add a transform of type `aggregate` that takes from the source, and name the transform in the output's `from`."
    NeedsSource "C011" "It takes from sources only"
        cause "Aggregations take samples, `event_file` takes events, and a cluster (`sharding`) takes lines as they were sent: all of them come from a source. The `from` here names a transform."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\n[outputs.events]\ntype = \"event_file\"\nfrom = [\"stats\"]"
        mend "Name the source itself in `from`."
    Cycle "C012" "It feeds itself"
        cause "Following `from` from this transform leads back to it: no record could ever enter."
        example "[transforms.a]\ntype = \"aggregate\"\nfrom = [\"b\"]\n\n[transforms.b]\ntype = \"aggregate\"\nfrom = [\"a\"]"
        mend "Let one of them take from a source."
    MixedDialects "C013" "One aggregation takes from sources that read differently"
        cause "The series of one aggregation are found by the bytes of their names. Sources with different dialects or reading options would give one text two meanings."
        example "[sources.a]\ntype = \"statsd\"\ndialect = \"etsy\"\n\n[sources.b]\ntype = \"statsd\"\ndialect = \"union\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"a\", \"b\"]"
        mend "Give the sources the same options, or one aggregation each; several aggregations may feed one output."
    UnknownReference "C014" "A name refers to nothing"
        cause "A `from` names something that the file does not define, or that gives no records: only sources and transforms do."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stat\"]"
        mend "Use one of the names in the message, or define the missing section."
    Loop "C015" "An output sends to a listener of the same daemon"
        cause "What the output sends would come in again at the source and be sent again, for ever."
        example "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:8125\"]"
        mend "Send to another address or listen at another one."
    AddressTaken "C016" "Two listeners share one address"
        cause "Only one listener can have a port (or a socket's path). Two addresses also collide when one of them is the wildcard `0.0.0.0` or `[::]` with the same port."
        example "[sources.a]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\n[sources.b]\ntype = \"statsd\"\nlisten = [\"udp://0.0.0.0:8125\"]"
        mend "Give one of them another port, or join the two sources into one."
    Unused "C017" "Nothing takes from it"
        cause "A source or transform is not named in any `from`, so its records end as `filtered`. This is a warning: the rest works."
        example "[sources.app]\ntype = \"statsd\""
        mend "Name it in the `from` of a transform or output, or remove it."
    FileShared "C019" "Two writers share one file"
        cause "Each file of an output is written, and rotated, by that output alone. Two writers would mix their lines and rotate each other's files away."
        example "[outputs.points]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n\n[outputs.events]\ntype = \"event_file\"\nfrom = [\"app\"]\npath = \"points\""
        mend "Give each its own `path`."
    Empty "C020" "A list has nothing in it"
        cause "The option needs at least one entry: a source without a listener or an output without a feed would do nothing."
        example "[sources.app]\ntype = \"statsd\"\nlisten = []"
        mend "Add an entry, or remove the section."
    Repeated "C021" "The same thing stands twice"
        cause "A key or list entry is repeated. The second one would overwrite the first, or do its work twice."
        example "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nfrom = [\"app\"]"
        mend "Remove one of the two."
    NoEffect "C022" "The option has no effect here"
        cause "Another option of the section, such as the dialect or the namespace, makes this one meaningless. This is a warning: the option is ignored."
        example "[sources.app]\ntype = \"statsd\"\ndialect = \"etsy\"\ngauge_sign = \"absolute\""
        mend "Remove the option, or change the one that the message names."
    NoSource "C023" "The file defines no source"
        cause "Without a source nothing can come in. An empty file does not mean the built-in defaults: those hold only when no file is given."
        example "[http]\nlisten = \"127.0.0.1:8680\""
        mend "Add a source: `[sources.app]` with `type = \"statsd\"`."
    TooMany "C024" "There are too many of them"
        cause "A file may define up to 1000 sources, 1000 transforms and 1000 outputs (an output counts once for each of its endpoints), and lists have their own limits, named in the message."
        example "[outputs.copy]\nto = [\"udp://10.0.0.1:8125\", …]"
        mend "Split the work over several daemons."
    Verbatim "C025" "Verbatim packets cannot be looked into"
        cause "In `mode = \"verbatim\"` packets go on byte for byte and nothing is parsed. Filters, sampling, changes of names and tags, clusters, and aggregates as samples all need lines."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\"]\nmode = \"verbatim\"\nallow = [\"api.*\"]"
        mend "Leave `mode` out, or write `repack` (lines are packed anew) or `lines` (each line is a packet). Or remove the option, so that packets stay as they are."
    NoCluster "C026" "The endpoints make no cluster"
        cause "An output with a `sharding` gives each key to one of its endpoints. For that the labels must be distinct and as many as there are endpoints, and each shard from 0 on must be given to one endpoint, once. The members of a relay's cluster are outputs that take from the relay, at least as many as each point has copies."
        example "[sources.app]\ntype = \"statsd\"\n\n[outputs.nodes]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\", \"udp://10.0.0.6:8125\"]\nsharding = \"jump\"\nshards = { \"10.0.0.5:8125\" = \"0-7\", \"10.0.0.6:8125\" = \"9-15\" }"
        mend "Correct what the message names. `staunch check --keys FILE` shows which endpoint owns each of your keys."
    AckWhen "C027" "The source cannot promise what `ack_when` says"
        cause "`ack_when` tells a client that a line need not be kept. `safe` needs a queue on disk at every output that takes from the source, `delivered` an endpoint that can tell, and both need that no aggregation stands in between: an aggregate is in memory until its window ends. Only connections can be answered."
        example "[sources.app]\ntype = \"statsd\"\nack_when = \"delivered\"\n\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://10.0.0.5:8125\"]"
        mend "Change what the message names, or promise less: `accepted` can always be kept on connections."
    WrongRecords "C028" "It cannot take points"
        cause "A source of type `graphite` gives points, which go on as they are. Aggregations take StatsD samples; consoles and the like take what an aggregation gives; clusters, filters and changes of `udp`, `tcp` and `unix` outputs look into StatsD lines."
        example "[sources.in]\ntype = \"graphite\"\n\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"in\"]"
        mend "Let an output of type `graphite` or `graphite_file` take from the source, or one of type `udp`, `tcp` or `unix` that passes lines on as they are."
    BadRule "C029" "The rule cannot be"
        cause "A rule of a relay is a rewrite when it has `into`, an aggregation rule when it has `compute`, and otherwise a route, and has options of one of them only. An aggregation rule needs `every`, a longer `expire`, and something to compute. The blackhole is no cluster, so nothing else stands beside it."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.']\ninto = 'system.'\nto = [\"storage\"]"
        mend "Write two rules where two things are meant, in the order in which they are to happen."
    BadPattern "C030" "The regular expression cannot be used"
        cause "The expression breaks a rule of regular expressions, or is too large once it is compiled. A text without any meaning beside itself needs no quoting, but `.`, `[`, `(`, `|` and their like do."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.(cpu|mem']\nto = [\"storage\"]"
        mend "Correct what the message names. A character that has a meaning is written as itself with `\\` before it; in TOML, `'…'` leaves every `\\` as it is."
    IdleRule "C031" "The rule hardly does what was meant"
        cause "No name gets as far as this rule, or it neither sends nor validates, or it stops without sending, or an aggregation rule takes in its own results. This is a warning: the rest works."
        example "[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\n[[transforms.relay.rules]]\nto = \"blackhole\"\n\n[[transforms.relay.rules]]\nmatch = ['^sys\\.']\nto = \"blackhole\""
        mend "Do what the hint says, or remove the rule."

    HttpOpen "C033" "The HTTP server is open to a network"
        cause "Without a token everybody who reaches the address can read the names of all series and every figure of the daemon. Without TLS the answers, and the token, can be read on the way. The message says what is missing. This is a warning: the server answers."
        example "[http]\nlisten = \"0.0.0.0:8680\""
        mend "Set `token_file`, so that requests need a token, and `tls`, so that nobody on the way reads it. Or listen on a loopback address, and let those in through a proxy of yours."
    ManagementOpen "C034" "A management port is open to a network"
        cause "The port has no authentication: everybody who reaches the address can delete series and change what `health` answers. Configs of node's statsd and Net::Statsd::Server open it to all addresses unless `mgmt_address` says otherwise. This is a warning: the port answers."
        example "[management]\nlisten = \"0.0.0.0:8126\""
        mend "Set `read_only = true`, or listen on a loopback address. In a config of the originals write `mgmt_address: '127.0.0.1'`, or start with `--management 127.0.0.1:8126`, or with `--management off`."
    TokenOpen "C035" "Others can read the token"
        cause "The file of `http.token_file` can be read by others than its owner, and who has the token may read everything over HTTP. The token is in use all the same: this is a warning."
        example "[http]\ntoken_file = \"/etc/staunch/http.token\""
        mend "`chmod 600` the file, and let it belong to the user that the daemon runs as. Where others have read it, write a new token; a reload reads it again."
    CertificateDates "C036" "A certificate is not valid today"
        cause "The certificate of a listener, or the one that an output shows to its endpoint, has expired or is not valid yet. A peer that looks at the dates refuses it; nothing else does. This is a warning: connections are made."
        example "[sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://0.0.0.0:2003\"]\ntls = { cert = \"/etc/staunch/points.pem\" }"
        mend "Have the certificate renewed, and reload with SIGHUP: its file is read again. Where it is not valid yet, look at this machine's clock. `staunch_source_certificate_expires_in_seconds` and its kin tell beforehand."
    DiskTooSmall "C037" "The disk has no room for its queues"
        cause "Queues on disk may grow to `queue.max_bytes` each. Together that is more than is free on the disk of the data directory, so that an outage fills the disk before the queues are full; then records wait in memory. This is a warning: the rest works."
        example "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://10.0.0.5:2003\"]\nqueue = { kind = \"disk\", max_bytes = \"1TiB\" }"
        mend "Lower `queue.max_bytes` to bytes per second times the longest outage that you want to survive, or let `data_dir` be on a larger disk."
    RingCollision "C038" "Members of a cluster share one place in its ring"
        cause "The rings of `carbon_ch`, `python_carbon_ch` and `python_mmh3_ch` place a member by its host or its instance, never by its port, and that of `python_fnv1a_ch` by its instance alone. Members that look alike to the ring have the same places in it: the first one gets every name, the others none. This is a warning: it is what the originals do."
        example "[sources.lines]\ntype = \"graphite\"\n\n[transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\nclusters.storage = { type = \"carbon_ch\", to = [\"carbon\"] }\nrules = [{ to = \"storage\" }]\n\n[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"relay\"]\nto = [\"tcp://127.0.0.1:12003\", \"tcp://127.0.0.1:12103\"]"
        mend "Name each member with an instance: `to = [\"carbon/127.0.0.1:12003=a\", \"carbon/127.0.0.1:12103=b\"]`. Or use a ring that looks at ports, such as `fnv1a_ch`."

    UnsupportedJavascript "I001" "This JavaScript cannot be evaluated here"
        cause "The file of the original is a JavaScript expression. Literals, `process.env`, simple operators and a few functions are understood; loops, function calls and the like are not."
        example "{ port: ports.map(p => p + 1)[0] }"
        mend "Write the value itself, or evaluate the file once with node and keep the JSON it gives."
    ImportUnknownKey "I002" "The original has no option of this name"
        cause "The original ignores options that it does not know, so this one never had an effect there; it is often a misspelling."
        example "{ flushInteval: 10000 }"
        mend "Correct the name if the hint fits, otherwise remove the line."
    UnknownBackend "I003" "No such backend here"
        cause "The file loads a backend module that has no counterpart in this daemon."
        example "{ backends: [\"statsd-librato-backend\"] }"
        mend "Remove it, or replace it with an output that exists; `--ignore-unknown-backends` goes on without it."
    NotCarriedOver "I004" "This line was not carried over"
        cause "The option exists in the original, but nothing here corresponds to it, so that the native file does without it."
        example "{ title: \"statsd on web1\" }"
        mend "Nothing when the option does not matter; otherwise the message says what does the same here."
    ImportBadValue "I005" "The original would not work with this value"
        cause "The value has the right type, but is outside what the option means, or the original gives a result that nobody wants."
        example "{ percentThreshold: [101] }"
        mend "Write one of the values that the message names."
    ImportBadType "I006" "The value has the wrong type"
        cause "The option wants another type of value. Numbers in texts (\"8125\", as they come from environment variables) are converted; this one cannot be."
        example "{ port: [\"8125\"] }"
        mend "Write the value as the message says."
    ImportNoEffect "I007" "The option has no effect"
        cause "The option is obsolete, stands in the wrong place, or is overridden by another one: the original ignores it."
        example "{ legacyNamespace: false }"
        mend "Remove it, or move it to where the hint says."
    ImportSyntax "I008" "The file cannot be read"
        cause "The text breaks a rule of the original's file format at the marked place."
        example "{ port: 8125 backends: [] }"
        mend "Correct the marked place; what stands before it is often the cause."
    UnknownCluster "I009" "No cluster of this name"
        cause "A rule of a relay names a cluster that no statement before it defines. Statements are read from top to bottom, included files in their place."
        example "match ^sys\\. send to storage;\ncluster storage forward 10.0.0.5;"
        mend "Correct the name, or define the cluster above the rule."
    ServerShared "I010" "One server is described in two ways"
        cause "Clusters that name the same host, port and protocol share one queue and one connection, so the server can have only one instance, one form of lines and one transport. Members of `any_of` and `failover` clusters hand their queues on to each other and cannot be named before."
        example "cluster a forward 10.0.0.5;\ncluster b forward 10.0.0.5=x;"
        mend "Write the same in both places, or use another port for one of the two."
    BadExpression "I011" "The regular expression cannot be used"
        cause "The expression breaks a rule of regular expressions at the marked place, or is too large once it is compiled."
        example "match ^sys\\.(cpu|mem send to storage;"
        mend "Correct the marked place. A character that has a meaning is written as itself with `\\` before it; within quotes every `\\` is doubled."
    ReadsTwoWays "I012" "Builds of the original read this differently"
        cause "carbon-c-relay is built with the C library's regular expressions or with PCRE2, and for this construct they disagree. This is a warning; the message says how it is read here."
        example "rewrite ^host\\d+\\. into host.;"
        mend "Write the form of the hint, which every build reads alike."
    IncludeUnread "I013" "A file cannot be read"
        cause "The configuration file, or one that it includes, is not there, may not be read, is not UTF-8, or includes itself."
        example "include /etc/relay.d/clusters.conf;"
        mend "Correct the path or the file; the message has the system's reason."
    Unreachable "I014" "No name gets as far as this rule"
        cause "A `match *` that stops stands above it, so that every name ends there. This is a warning."
        example "match * send to storage stop;\nmatch ^sys\\. send to other;"
        mend "Move the rule up, or take the `stop` away."
    ImportDeprecated "I015" "An old form"
        cause "The original still reads it, and says that a later version will not. This is a warning."
        example "send statistics to storage;"
        mend "Write the form of the hint."
    Backtracks "I016" "The expression is matched by backtracking"
        cause "Look-around, atomic groups and back references cannot be matched in time that is linear in the name's length. Such a search is slower, and gives up on a name that has too many ways to match or more than 2048 bytes: the name counts as not matching, and is counted. Names without the expression's plain texts never get so far. This is a warning."
        example "match \"^servers\\\\.(?!test)\" send to storage;"
        mend "Say it without, where that can be: what must not match goes into a rule above it that stops."
    ListensEverywhere "I017" "It listens on every interface"
        cause "carbon listens on 0.0.0.0 where carbon.conf says nothing else, and so does what was imported. Everything else here listens on loopback unless it is told otherwise. This is a warning."
        example "[relay]\nLINE_RECEIVER_PORT = 2013"
        mend "Write the interface in carbon.conf, or `tcp://127.0.0.1:2013` in `listen` of the native file."
}

impl Code {
    /// The code of a word such as `C014`; case does not matter.
    pub fn of_word(word: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.word().eq_ignore_ascii_case(word))
    }

    /// The page of `staunch explain`: title, cause, example, mend.
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
