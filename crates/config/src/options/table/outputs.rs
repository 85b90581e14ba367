//! Options of outputs of aggregates and events: Graphite, files, console.

use wire::graphite::{Namespace, Numbers};

use super::types::{FLUSHED, KIB, NAMING, ROTATED, TIB, one_of, size, size_or_off, whole};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Form, Plain, rows, words};
use crate::options::row::Default::{Depends, Required, Toml};
use crate::options::row::Scheme;
use crate::options::row::Type::{Endpoints, Flag, Path, Text};
use crate::options::section::Section::{
    OutputConsole, OutputEventFile, OutputGraphite, OutputGraphiteFile, OutputPerlFile,
};
use crate::plan::{ConsoleEncoding, GraphiteEncoding, OutputKind};

words! {
    GraphiteEncoding: "lines" = GraphiteEncoding::Lines, "pickle" = GraphiteEncoding::Pickle,
        "syslog" = GraphiteEncoding::Syslog;
    NamespaceLegacy for bool: "legacy" = true, "modern" = false;
    Numbers: "shortest" = Numbers::Shortest, "perl" = Numbers::Perl;
    ConsoleEncoding: "node" = ConsoleEncoding::Node, "perl" = ConsoleEncoding::Perl;
}

rows! {
    GRAPHITE: OutputKind;
    in [OutputGraphite] {
        "to": Endpoints(&[Scheme::Tcp, Scheme::Udp]), Required, "[\"tcp://10.0.0.5:2003\"]",
            "Endpoints; each gets every point.",
            "With several endpoints, each is an output named `NAME/host:port`. `udp://` sends each point as its own datagram.";
        "encoding" => Graphite { form }: one_of::<GraphiteEncoding>(), Toml("\"lines\""), "\"pickle\"",
            "Encoding on the wire: text lines (carbon's port 2003) or pickle frames (2004).",
            "`syslog`: each line is a syslog message, `<30>1 TIME CLIENT carbon-c-relay - - - LINE`, as with carbon-c-relay's `type syslog`.";
    }
}

rows! {
    NAMESPACE: Namespace = |_| Namespace::default();
    in NAMING {
        "namespace" => legacy as NamespaceLegacy: one_of::<NamespaceLegacy>(), Toml("\"legacy\""), "\"modern\"",
            "Names of series in Graphite.",
            "`legacy`: `stats.NAME`, `stats_counts.NAME`, `stats.timers.NAME.mean` …, the default of node statsd. `modern`: `stats.counters.NAME.rate`, `stats.timers.NAME.mean` …, with the prefixes below.";
        "global_prefix" => global_prefix: Text, Toml("\"stats\""), "\"web\"",
            "First part of all names.",
            "Only with `modern`. An empty text omits it.";
        "counter_prefix" => counter_prefix: Text, Toml("\"counters\""), "\"\"",
            "Second part of counters.",
            "Only with `modern`. An empty text omits it.";
        "timer_prefix" => timer_prefix: Text, Toml("\"timers\""), "\"\"",
            "Second part of timers.",
            "Only with `modern`. An empty text omits it.";
        "gauge_prefix" => gauge_prefix: Text, Toml("\"gauges\""), "\"\"",
            "Second part of gauges.",
            "Only with `modern`. An empty text omits it.";
        "set_prefix" => set_prefix: Text, Toml("\"sets\""), "\"\"",
            "Second part of sets.",
            "Only with `modern`. An empty text omits it.";
        "global_suffix" => global_suffix: Text, Toml("\"\""), "\"web1\"",
            "Last part of all names, before their tags.",
            "An empty text omits it.";
    }
    in FLUSHED {
        "stats_prefix" => stats_prefix: Text, Toml("\"statsd\""), "\"statsd.web1\"",
            "Part of the names of the figures about the flush, such as `statsd.numStats`.";
    }
    in NAMING {
        "counts" => counts: Flag, Toml("true"), "false",
            "Also send the sum of a counter's window, not only its rate.";
        "bare_tag_value" => bare_tag_value: Text, Toml("\"true\""), "\"yes\"",
            "Value for tags without a value.",
            "Carbon rejects tags without a value.";
        "numbers" => numbers: one_of::<Numbers>(), Toml("\"shortest\""), "\"perl\"",
            "Format of numbers: the shortest exact digits, or that of Net::Statsd::Server (`%.6f`).";
    }
}

rows! {
    FILES: OutputKind;
    in [OutputGraphiteFile] {
        "path" => GraphiteFile { path }: Path, Depends("`points.graphite` in the folder `NAME` of `data_dir`"), "\"/var/lib/staunch/points\"",
            "The current file.",
            "Full files are renamed to `PATH.1`, `PATH.2`, …; `PATH.1` is the newest.";
    }
    in [OutputEventFile] {
        "path" => EventFile { path }: Path, Depends("`events.jsonl` in the folder `NAME` of `data_dir`"), "\"/var/lib/staunch/events\"",
            "The current file.",
            "Full files are renamed to `PATH.1`, `PATH.2`, …; `PATH.1` is the newest.";
    }
}

rows! {
    ROTATION: OutputKind;
    in [OutputGraphiteFile] {
        "max_file_bytes" => GraphiteFile { file_bytes_max }: size_or_off(4 * KIB, TIB), Toml("\"64MiB\""), "\"off\"",
            "Size at which the file is rotated. `\"off\"`: the file grows without a limit.";
    }
    in [OutputEventFile] {
        "max_file_bytes" => EventFile { file_bytes_max }: size(4 * KIB, TIB), Toml("\"16MiB\""), "\"1MiB\"",
            "Size at which the file is rotated.";
    }
    in ROTATED {
        "max_files" => all as RotatedFiles: whole(0, 10_000), Depends("15 for `graphite_file`, 4 for `event_file`"), "2",
            "Number of rotated files to keep, in addition to the current one.";
    }
}

rows! {
    FILE_FORMS: OutputKind;
    in [OutputGraphiteFile] {
        "peer" => GraphiteFile { peer }: Flag, Toml("false"), "true",
            "Write the client's address and a space before each line of a point.",
            "Clients of a unix socket have no address; `(unknown)` is written. Before aggregates there is only the space.";
    }
    in [OutputPerlFile] {
        "path" => PerlFile { path }: Path, Required, "\"/var/log/statsd.stats\"",
            "The file, which is only appended to.";
        "stats_prefix" => PerlFile { stats_prefix }: Text, Toml("\"statsd\""), "\"\"",
            "Series to omit: names that begin with this text and a dot.";
    }
    in [OutputConsole] {
        "encoding" => Console { form }: one_of::<ConsoleEncoding>(), Toml("\"node\""), "\"perl\"",
            "Format of the document.",
            "`node`: node statsd's members as JSON, on stdout. `perl`: one line of JSON, on stderr.";
        "pretty" => Console { pretty }: Flag, Toml("false"), "true",
            "Indent the document.";
    }
}

/// Number of rotated files to keep; `None` without rotation.
pub(crate) struct RotatedFiles;

impl Form<OutputKind> for RotatedFiles {
    fn put(kind: &mut OutputKind, value: &Checked, place: Place) {
        if let OutputKind::GraphiteFile { files_max, .. } | OutputKind::EventFile { files_max, .. } = kind {
            Plain::put(files_max, value, place);
        }
    }

    fn checked(kind: &OutputKind) -> Option<Checked> {
        let (_, files_max) = kind.file().filter(|_| !kind.moved_by_others())?;
        Some(Checked::Whole(files_max.into()))
    }
}
