//! The limit on open files of this process.

use config::plan::{Listen, Plan};

use super::descriptors::{self, Kind};

/// Raises the limit on open files, divides it (`descriptors`) among the outputs and others, and warns when the
/// connections allowed by the plan exceed the share of sources.
#[cfg(unix)]
pub(crate) fn make_room(plan: &Plan, outputs: usize) {
    let (listeners, connections) = connections_allowed(plan);
    match sys::raise_open_file_limit() {
        Ok(max) => {
            descriptors::divide(max, outputs);
            let share = descriptors::max(Kind::Source);
            // Nobody has asked for the default, and few have more clients than this.
            let is_enough = share >= ENOUGH && is_default(plan);
            if share < connections as u64 && !is_enough {
                tracing::warn!(
                    target: crate::carbon_c_relay::log_targets::NOT_AN_ERROR,
                    "{connections} connections are allowed ({listeners}), but only {max} open files: sources refuse \
                     connections above {share}, to keep files for outputs and queues. Lower `max_connections`, or \
                     raise the limit on open files (LimitNOFILE, `ulimit -Hn`)"
                );
            }
        }
        Err(error) => tracing::debug!("cannot raise the limit on open files: {error}"),
    }
}

/// Connections that are enough where the config says nothing.
const ENOUGH: u64 = 1_000;

/// True when no source has a limit of connections of its own that is above [`ENOUGH`].
fn is_default(plan: &Plan) -> bool {
    let limits = plan.sources.iter().map(|source| source.connections_max);
    limits.into_iter().all(|most| most == model::limits::CONNECTIONS_MAX || most as u64 <= ENOUGH)
}

/// Most connections that the stream listeners of a plan may have together, and an explanation: "2 listeners with
/// `max_connections` = 10000 each".
fn connections_allowed(plan: &Plan) -> (String, usize) {
    let is_stream = |listen: &&Listen| !matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
    let most = |source: &config::plan::SourcePlan| {
        let listeners = source.listen.iter().filter(is_stream).count();
        vec![source.connections_max; listeners]
    };
    let each: Vec<usize> = plan.sources.iter().flat_map(most).collect();
    let text = match each.as_slice() {
        [one] => format!("one listener with `max_connections` = {one}"),
        [first, rest @ ..] if rest.iter().all(|most| most == first) => {
            format!("{} listeners with `max_connections` = {first} each", each.len())
        }
        all => format!("`max_connections` of {} listeners", all.len()),
    };
    (text, each.iter().sum())
}

#[test]
fn connections_are_allowed_by_listener() {
    let allowed = |listen: &str, max: usize| {
        let text = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = {listen}\n[sources.more]\ntype = \"graphite\"\n\
             listen = [\"tcp://127.0.0.1:2004\"]\nmax_connections = {max}\n[outputs.copy]\ntype = \"udp\"\n\
             from = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n"
        );
        let source = config::diagnostic::Source { name: "test", text: &text };
        connections_allowed(&config::check(source, config::Format::Toml).0.expect("a good file"))
    };
    let both = "[\"udp://127.0.0.1:8125\", \"tcp://127.0.0.1:8125\"]";
    let udp = "[\"udp://127.0.0.1:8125\"]";
    let text = |text: &str| text.to_owned();
    assert_eq!(allowed(both, 10_000), (text("2 listeners with `max_connections` = 10000 each"), 20_000));
    assert_eq!(allowed(both, 5), (text("`max_connections` of 2 listeners"), 10_005));
    assert_eq!(allowed(udp, 5), (text("one listener with `max_connections` = 5"), 5));
}
