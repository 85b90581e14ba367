//! What the daemon says when it is up: what listens where, where data goes, what to try.

use std::path::Path;

use std::net::SocketAddr;

use config::plan::{ConsoleForm, Destination, GraphiteSource, OutputKind, Plan, SourceKind};

use crate::admin::accounts::{output_word, source_word};
use crate::daemon::shared::Shared;

/// Prints the banner on stderr. A closed stderr is no error.
pub fn print(shared: &Shared, file: Option<&Path>) {
    let wiring = shared.wiring.load();
    let ports = OpenPorts { listening: &wiring.listening, http: shared.http, management: &shared.management };
    let text = text(&wiring.plan, ports, file.map(|file| file.display().to_string()).as_deref());
    crate::log_stream::to_stderr(text.as_bytes());
}

/// What is really open: less than the plan says when a port of the built-in plan was taken.
#[derive(Clone, Copy, Debug)]
pub struct OpenPorts<'a> {
    /// Places of each source.
    pub listening: &'a [Vec<String>],
    /// The HTTP server's address.
    pub http: Option<SocketAddr>,
    /// The management ports' addresses.
    pub management: &'a [SocketAddr],
}

/// The banner's text.
pub fn text(plan: &Plan, ports: OpenPorts<'_>, config_name: Option<&str>) -> String {
    let OpenPorts { listening, http, management } = ports;
    let config = config_name.unwrap_or(match plan.built_in {
        true => "no config file: built-in defaults, loopback only",
        false => "no config file: as the command line says",
    });
    let scheme = if plan.http_server.tls.is_some() { "https" } else { "http" };
    let mut lines = vec![format!("staunch {}   {config}", env!("CARGO_PKG_VERSION"))];
    for (source, places) in plan.sources.iter().zip(listening) {
        if let Some((every_ms, prefix)) = match &source.kind {
            SourceKind::Own(own) => Some((own.every_ms, &own.prefix)),
            SourceKind::RelayOwn(own) => Some((own.every_ms, &own.prefix)),
            SourceKind::Statsd(_) | SourceKind::Graphite(_) => None,
        } {
            let every = config::text::duration(every_ms);
            lines.push(format!("  {:<14}every {every}, names begin with `{prefix}`", source_word(source)));
            continue;
        }
        let places = if places.is_empty() { "nowhere".to_owned() } else { places.join("  ") };
        lines.push(format!("  {:<14}{places}", source_word(source)));
    }
    for address in management {
        lines.push(format!("  {:<14}tcp://{address}", "management"));
    }
    if let Some(http) = http {
        lines.push(format!("  {:<14}{scheme}://{http}/", "http"));
    }
    for output in &plan.outputs {
        lines.push(format!("  {:<14}{}", output_word(&output.kind), place(&output.kind)));
    }
    let sources = plan.sources.iter().zip(listening);
    let mut tip_of = sources.filter_map(|(source, places)| tip(places, line_to_try(&source.kind)?));
    let mut tips: Vec<String> = tip_of.next().into_iter().collect();
    // Without an aggregation there are no series.
    let page = match (plan.aggregates().next(), plan.relays().next()) {
        (Some(_), _) => "series",
        (None, Some(_)) => "relay/explain?name=hello.world",
        (None, None) => "accounts",
    };
    // Some shells look for files where a `?` is that stands by itself.
    let quote = if page.contains('?') { "'" } else { "" };
    tips.extend(http.map(|http| format!("curl {quote}{scheme}://{http}/api/v1/{page}{quote}")));
    let points = plan.outputs.iter().find_map(|output| match &output.kind {
        OutputKind::GraphiteFile { path, .. } => Some(path.display()),
        _ => None,
    });
    if let Some(path) = points.filter(|_| plan.built_in) {
        tips.push(format!("tail {path}      from the first flush on, every 10 s"));
    }
    for (at, tip) in tips.iter().enumerate() {
        lines.push(format!("{:<9}{tip}", if at == 0 { "try it:" } else { "" }));
    }
    lines.join("\n") + "\n"
}

/// What a shell can send to such a source. Nobody types a pickle.
fn line_to_try(kind: &SourceKind) -> Option<&'static str> {
    match kind {
        SourceKind::Statsd(_) => Some("hello.world:1|c"),
        SourceKind::Graphite(GraphiteSource { messages: None, .. }) => Some("hello.world 1 $(date +%s)"),
        SourceKind::Graphite(_) | SourceKind::Own(_) | SourceKind::RelayOwn(_) => None,
    }
}

/// How to send `line` to the first address that a shell can write to by itself: UDP before TCP.
fn tip(places: &[String], line: &str) -> Option<String> {
    let (way, place) = ["udp", "tcp"].iter().find_map(|way| {
        let place = places.iter().find_map(|place| place.strip_prefix(way)?.strip_prefix("://"))?;
        Some((way, place))
    })?;
    let (host, port) = place.rsplit_once(':')?;
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "[::]" | "[::1]" => "::1",
        host => host,
    };
    // Not `nc`: a new Debian has none, and bash, which can redirect to /dev/udp, needs nothing else.
    Some(format!("echo \"{line}\" > /dev/{way}/{host}/{port}"))
}

fn place(kind: &OutputKind) -> String {
    match kind {
        OutputKind::Graphite { to, .. } => Destination::Tcp(to.clone()).to_string(),
        OutputKind::GraphiteDatagrams { to, .. } => Destination::Udp(to.clone()).to_string(),
        OutputKind::Packets(packets) => packets.to.to_string(),
        OutputKind::GraphiteFile { path, file_bytes_max: 0, .. } => path.display().to_string(),
        OutputKind::GraphiteFile { path, file_bytes_max, files_max, .. }
        | OutputKind::EventFile { path, file_bytes_max, files_max } => {
            let most = file_bytes_max * (u64::from(*files_max) + 1);
            format!("{} (at most {})", path.display(), crate::talk::bytes(most))
        }
        OutputKind::PerlFile { path, .. } => path.display().to_string(),
        OutputKind::Console { form: ConsoleForm::Node, .. } => "standard output".into(),
        OutputKind::Console { form: ConsoleForm::Perl, .. } => "standard error".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_where_its_original_prints() {
        let console = |form| place(&OutputKind::Console { form, pretty: false });
        assert_eq!(console(ConsoleForm::Node), "standard output");
        assert_eq!(console(ConsoleForm::Perl), "standard error");
    }
}

#[test]
fn the_tip_writes_to_what_is_open() {
    let places = |places: &[&str]| places.iter().map(|&place| place.to_owned()).collect::<Vec<_>>();
    for (open, want) in [
        (
            &["tcp://0.0.0.0:9", "udp://0.0.0.0:8"][..],
            Some("echo \"hello.world:1|c\" > /dev/udp/127.0.0.1/8"),
        ),
        (&["tcp://[::]:9"], Some("echo \"hello.world:1|c\" > /dev/tcp/::1/9")),
        (&["unixgram:///run/s"], None),
        (&[], None),
    ] {
        assert_eq!(tip(&places(open), "hello.world:1|c").as_deref(), want, "{open:?}");
    }
}
