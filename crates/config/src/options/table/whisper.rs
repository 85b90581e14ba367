//! Options of the output `whisper`, beside those that others have too.

use graphite::whisper::{AggregationMethod, Space};

use super::types::{HOUR, MIB, SECOND, TIB, YEAR, duration, number, one_of, size, size_or_off, whole};
use crate::options::field::{Nested, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Flag, Path, Table, Tables, Text};
use crate::options::section::Section::{OutputCompat, OutputWhisper, WhisperAggregation, WhisperSchema};
use crate::plan::{AggregationPlan, SchemaPlan, WhisperCompat, WhisperPlan};

words! {
    Space: "sparse" = Space::Sparse, "zeros" = Space::Zeros, "allocate" = Space::Allocate;
    AggregationMethod: "average" = AggregationMethod::Average, "sum" = AggregationMethod::Sum,
        "last" = AggregationMethod::Last, "max" = AggregationMethod::Max, "min" = AggregationMethod::Min,
        "avg_zero" = AggregationMethod::AvgZero, "absmax" = AggregationMethod::AbsMax,
        "absmin" = AggregationMethod::AbsMin;
}

rows! {
    STORE: WhisperPlan;
    in [OutputWhisper] {
        "path" => path: Path, Depends("`whisper` in the folder `NAME` of `data_dir`"), "\"/opt/graphite/storage/whisper\"",
            "The folder with the files.",
            "It may contain the files of a carbon-cache that has been stopped.";
        "schemas_file" => schemas_file: Path, Absent("`schemas`"), "\"/opt/graphite/conf/storage-schemas.conf\"",
            "A storage-schemas.conf: the archives of new files.",
            "It is read again when it changes. Its rules come before those of `schemas`.";
        "aggregations_file" => aggregations_file: Path, Absent("`aggregations`"), "\"/opt/graphite/conf/storage-aggregation.conf\"",
            "A storage-aggregation.conf: how points of new files are aggregated.",
            "It is read again when it changes. Its rules come before those of `aggregations`.";
        "schemas" => schemas as Nested: Tables(WhisperSchema), Toml("[]"), "[{ pattern = '^carbon\\.', retentions = \"60s:90d\" }]",
            "Archives of new files, by name.",
            "Without `schemas` and `schemas_file`: `10s:1d,1m:7d`. A name that no rule matches gets `60s:7d`, as with carbon.";
        "aggregations" => aggregations as Nested: Tables(WhisperAggregation), Toml("[]"), "[{ pattern = '\\.count$', method = \"sum\" }]",
            "How points of new files are aggregated, by name.",
            "Without `aggregations` and `aggregations_file` the method follows from StatsD's names: counts and sums `sum`, gauges `last`, `upper` `max`, `lower` `min`, others `average`. A name that no rule matches gets `average` and 0.5, as with carbon.";
        "new_files" => new_files: one_of::<Space>(), Toml("\"sparse\""), "\"allocate\"",
            "How a new file takes its space.",
            "`sparse`: blocks are taken when points are written. `zeros`: all bytes are written. `allocate`: the file system reserves them.";
        "write_after" => write_after_ms: duration(SECOND, HOUR), Toml("\"270s\""), "\"1m\"",
            "Longest time that a point is only in memory and in the queue, before it is written to its file.",
            "A longer time writes more points at once, and needs less CPU and disk. Points in memory are in answers at once, and the queue on disk keeps them over a crash.";
        "stop_timeout" => stop_timeout_ms: duration(SECOND, HOUR), Toml("\"1m\""), "\"5m\"",
            "Longest time after SIGTERM in which all points are written to their files.",
            "If it is shorter than that of the daemon (`stop_timeout`), that one counts. What remains stays in the queue on disk, and the next start writes it.";
        "max_memory" => points_bytes_max: size(MIB, TIB), Toml("\"512MiB\""), "\"2GiB\"",
            "Most memory of points that are not in their files yet.",
            "At the limit, points wait in the queue until others are written.";
        "max_series" => series_max: whole(1, 100_000_000), Toml("2000000"), "100000",
            "Most series; points of further ones are dropped as `series_max`.";
        "max_name_memory" => names_bytes_max: size(MIB, TIB), Toml("\"512MiB\""), "\"1GiB\"",
            "Most memory of all names.",
            "A name takes some 50 to 150 bytes.";
        "max_bytes" => files_bytes_max: size_or_off(16 * MIB, 1024 * TIB), Toml("\"off\""), "\"50GiB\"",
            "Most disk space of all files. At the limit, the files that were written least recently are removed.",
            "Only in a folder that Staunch created, and not with `lock`. A file counts with its full size, also while it is sparse. The limit can be exceeded by the new files of a second.";
        "max_future" => future_max_ms: duration(SECOND, YEAR), Absent("10m, or a step of the finest archive"), "\"1h\"",
            "How far in the future a point may be.",
            "Later ones are dropped as `in_future`: in its file, such a point would replace the oldest one.";
        "max_updates_per_second" => updates_per_second_max: whole(0, 1_000_000), Toml("0"), "500",
            "Most updates of files in a second. `0`: as many as the disk allows.",
            "Points wait in memory and in the queue; none is dropped. Above three quarters of `max_memory`, files are updated all the same.";
        "max_creates_per_minute" => creates_per_minute_max: whole(0, 1_000_000), Toml("0"), "50",
            "Most new files in a minute. `0`: as many as the disk allows.",
            "Points wait in memory and in the queue; none is dropped. Above three quarters of `max_memory`, files are created all the same.";
        "lock" => lock: Flag, Toml("false"), "true",
            "Lock each file while it is written, for other programs that do the same.";
        "hash_tagged_names" => hash_tagged_names: Flag, Toml("true"), "false",
            "Whether the file of a series with tags is named by a hash alone, or by its name.";
        "online_migration" => online_migration: Flag, Toml("false"), "true",
            "Change existing files to the archives that new ones get, in the background.",
            "Also after a change of the files of rules. Each new point is the aggregate of the old points in its step. Not with `lock`.";
        "compat" => compat as Nested: Table(OutputCompat), Absent("the defaults of its options"), "{ whisper_accept_future = true }",
            "Behaviour of Python's whisper library that is not the default.";
    }
}

rows! {
    COMPAT: WhisperCompat = |_| WhisperCompat::default();
    in [OutputCompat] {
        "whisper_first_duplicate" => first_duplicate: Flag, Toml("false"), "true",
            "Of several points with one timestamp, store the first, and not the last.";
        "whisper_accept_future" => accept_future: Flag, Toml("false"), "true",
            "Store points of any future time.",
            "They replace the oldest points of the file.";
    }
}

rows! {
    SCHEMA: SchemaPlan = |_| SchemaPlan::default();
    in [WhisperSchema] {
        "pattern" => pattern: Text, Required, "'^servers\\.'",
            "Python's regular expression, which is searched in the name.",
            "Look-around and references to groups are not supported.";
        "retentions" => retentions: Text, Required, "\"10s:6h,1m:7d,10m:5y\"",
            "The archives: step and length of each, finest first.",
            "Units: `s`, `m`, `h`, `d`, `w`, `y`. A length without a unit is a number of points.";
    }
}

rows! {
    AGGREGATION: AggregationPlan = |_| AggregationPlan::default();
    in [WhisperAggregation] {
        "pattern" => pattern: Text, Required, "'\\.count$'",
            "Python's regular expression, which is searched in the name.",
            "Look-around and references to groups are not supported.";
        "method" => method: one_of::<AggregationMethod>(), Absent("average"), "\"sum\"",
            "How points of a finer archive become one of a coarser one.";
        "x_files_factor" => x_files_factor: number(0.0, 1.0), Absent("0.5"), "0",
            "Least share of known points for which a coarser point is written.";
    }
}
