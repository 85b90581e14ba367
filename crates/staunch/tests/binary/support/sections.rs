//! Sections of config files that several tests begin with.

/// A source of points on a port that the system chooses, with further options.
pub(crate) fn source(name: &str, more: &str) -> String {
    format!("[sources.{name}]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n{more}\n")
}

/// An output of points that soon tries again, with further options.
pub(crate) fn output(name: &str, from: &str, to: &str, more: &str) -> String {
    format!(
        "[outputs.{name}]\ntype = \"graphite\"\nfrom = [\"{from}\"]\nto = [\"{to}\"]\nmin_retry_delay = \"20ms\"\n\
         max_retry_delay = \"100ms\"\n{more}\n"
    )
}
