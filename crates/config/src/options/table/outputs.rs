//! Options of outputs of aggregates and events: Graphite, files, console.

use wire::graphite::{Namespace, Numbers};

use super::types::{KIB, NAMING, ROTATED, TIB, one_of, size, size_or_off, whole};
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
            "With several endpoints each is an output of its own, called `NAME/host:port`. `udp://` sends each point as a datagram of its own.";
        "encoding" => Graphite { form }: one_of::<GraphiteEncoding>(), Toml("\"lines\""), "\"pickle\"",
            "Form on the wire: text lines (carbon's port 2003) or pickle frames (2004).",
            "`syslog`: each line is a syslog message, `<30>1 TIME CLIENT carbon-c-relay - - - LINE`, as of carbon-c-relay's `type syslog`.";
    }
}

rows! {
    NAMESPACE: Namespace = |_| Namespace::default();
    in NAMING {
        "namespace" => legacy as NamespaceLegacy: one_of::<NamespaceLegacy>(), Toml("\"legacy\""), "\"modern\"",
            "Names of series in Graphite.",
            "`legacy`: `stats.NAME`, `stats_counts.NAME`, `stats.timers.NAME.mean` …, as node statsd by default. `modern`: `stats.counters.NAME.rate`, `stats.timers.NAME.mean` …, made of the prefixes below.";
        "global_prefix" => global_prefix: Text, Toml("\"stats\""), "\"web\"",
            "First part of all names.",
            "Only `modern`; an empty text leaves it out.";
        "counter_prefix" => counter_prefix: Text, Toml("\"counters\""), "\"\"",
            "Second part of counters.",
            "Only `modern`; an empty text leaves it out.";
        "timer_prefix" => timer_prefix: Text, Toml("\"timers\""), "\"\"",
            "Second part of timers.",
            "Only `modern`; an empty text leaves it out.";
        "gauge_prefix" => gauge_prefix: Text, Toml("\"gauges\""), "\"\"",
            "Second part of gauges.",
            "Only `modern`; an empty text leaves it out.";
        "set_prefix" => set_prefix: Text, Toml("\"sets\""), "\"\"",
            "Second part of sets.",
            "Only `modern`; an empty text leaves it out.";
        "global_suffix" => global_suffix: Text, Toml("\"\""), "\"web1\"",
            "Last part of all names, before their tags.",
            "An empty text leaves it out.";
    }
    in [OutputGraphite, OutputGraphiteFile] {
        "stats_prefix" => stats_prefix: Text, Toml("\"statsd\""), "\"statsd.web1\"",
            "Part of the names of the figures about the flush, such as `statsd.numStats`.";
    }
    in NAMING {
        "counts" => counts: Flag, Toml("true"), "false",
            "Also send the sum of a counter's window, not only its rate.";
        "bare_tag_value" => bare_tag_value: Text, Toml("\"true\""), "\"yes\"",
            "Value of a tag that has none.",
            "Carbon refuses tags without a value.";
        "numbers" => numbers: one_of::<Numbers>(), Toml("\"shortest\""), "\"perl\"",
            "How numbers are written: the shortest digits that read back, or as Net::Statsd::Server (`%.6f`).";
    }
}

rows! {
    FILES: OutputKind;
    in [OutputGraphiteFile] {
        "path" => GraphiteFile { path }: Path, Depends("`points.graphite` in the folder `NAME` of `data_dir`"), "\"/var/lib/staunch/points\"",
            "The file that is written now.",
            "Full ones are renamed to `PATH.1`, `PATH.2`, …, the newest being 1.";
    }
    in [OutputEventFile] {
        "path" => EventFile { path }: Path, Depends("`events.jsonl` in the folder `NAME` of `data_dir`"), "\"/var/lib/staunch/events\"",
            "The file that is written now.",
            "Full ones are renamed to `PATH.1`, `PATH.2`, …, the newest being 1.";
    }
}

rows! {
    ROTATION: OutputKind;
    in [OutputGraphiteFile] {
        "max_file_bytes" => GraphiteFile { file_bytes_max }: size_or_off(4 * KIB, TIB), Toml("\"64MiB\""), "\"off\"",
            "A larger file is rotated; `\"off\"`: it grows without end.";
    }
    in [OutputEventFile] {
        "max_file_bytes" => EventFile { file_bytes_max }: size(4 * KIB, TIB), Toml("\"16MiB\""), "\"1MiB\"",
            "A larger file is rotated.";
    }
    in ROTATED {
        "max_files" => all as RotatedFiles: whole(0, 10_000), Depends("15 for `graphite_file`, 4 for `event_file`"), "2",
            "Rotated files that are kept beside the one that is written.";
    }
}

rows! {
    FILE_FORMS: OutputKind;
    in [OutputGraphiteFile] {
        "peer" => GraphiteFile { peer }: Flag, Toml("false"), "true",
            "Write the client's address and a blank before each line of a point.",
            "At a unix socket clients have none, which is written as `(unknown)`; before aggregates there is only the blank.";
    }
    in [OutputPerlFile] {
        "path" => PerlFile { path }: Path, Required, "\"/var/log/statsd.stats\"",
            "The file that is appended to.";
        "stats_prefix" => PerlFile { stats_prefix }: Text, Toml("\"statsd\""), "\"\"",
            "Series whose name begins with this and a dot are left out.";
    }
    in [OutputConsole] {
        "encoding" => Console { form }: one_of::<ConsoleEncoding>(), Toml("\"node\""), "\"perl\"",
            "Form of the document.",
            "`node`: node statsd's members as JSON, on stdout. `perl`: one line of JSON, on stderr.";
        "pretty" => Console { pretty }: Flag, Toml("false"), "true",
            "Indent the document.";
    }
}

/// Rotated files that are kept; none where nothing is rotated.
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
