//! The banner of a started daemon: listeners, files, and a command to try.

use std::path::Path;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use config::plan::{HttpPlan, Link, OutputKind, Plan, RequestForm, StreamLink};

use wire::graphite::Namespace;

use crate::admin::accounts::{output_word, source_word};
use crate::daemon::shared::Shared;

/// Prints the banner on stderr. A closed stderr is not an error.
pub fn print(shared: &Shared, file: Option<&Path>) {
    let wiring = shared.wiring.load();
    let ports = OpenPorts {
        listening: &wiring.listening,
        http: shared.http,
        http_closed: shared.http_closed.as_deref(),
        management: &shared.management,
        carbonlink: shared.carbonlink.at,
    };
    let text = text(&wiring.plan, ports, file.map(|file| file.display().to_string()).as_deref());
    crate::log_stream::notice(&text);
}

/// The ports that are open: fewer than in the plan if a port of the built-in plan was in use.
#[derive(Clone, Copy, Debug)]
pub struct OpenPorts<'a> {
    /// Listen addresses of each source.
    pub listening: &'a [Vec<String>],
    /// The HTTP server's address.
    pub http: Option<SocketAddr>,
    /// Why it is not open although the plan has it.
    pub http_closed: Option<&'a str>,
    /// The management ports' addresses.
    pub management: &'a [SocketAddr],
    /// CarbonLink's address.
    pub carbonlink: Option<SocketAddr>,
}

/// The banner's text.
pub fn text(plan: &Plan, ports: OpenPorts<'_>, config_name: Option<&str>) -> String {
    let OpenPorts { listening, http, http_closed, management, carbonlink } = ports;
    let config = config_name.unwrap_or(match plan.built_in {
        true => "no config file: built-in defaults, loopback only",
        false => "no config file: options of the command line",
    });
    let scheme = if plan.http_server.tls.is_some() { "https" } else { "http" };
    let mut lines = vec![format!("staunch {}   {config}", env!("CARGO_PKG_VERSION"))];
    for (source, places) in plan.sources.iter().zip(listening) {
        if let Some((every_ms, prefix)) = source.kind.facts().report {
            let every = config::text::duration(every_ms);
            let (word, name) = (source_word(source), &source.name);
            lines.push(format!("  {word:<14}every {every}, names begin with `{prefix}`  (source {name})"));
            continue;
        }
        let open = if places.iter().any(|place| is_open(place)) { OPEN } else { "" };
        let places = if places.is_empty() { "nowhere".to_owned() } else { places.join("  ") };
        lines.push(format!("  {:<14}{places}  (source {}{open})", source_word(source), source.name));
    }
    for address in management {
        let open = if config::is_open(*address) { "  (open to the network)" } else { "" };
        lines.push(format!("  {:<14}tcp://{address}{open}", "management"));
    }
    if let Some(address) = carbonlink {
        let open = if config::is_open(address) { "  (open to the network)" } else { "" };
        lines.push(format!("  {:<14}tcp://{address}{open}", "carbonlink"));
    }
    if let Some(http) = http {
        let open = if config::is_open(http) { "  (open to the network)" } else { "" };
        lines.push(format!("  {:<14}{scheme}://{http}/{open}", "http"));
    }
    lines.extend(http_closed.map(|why| format!("  {:<14}{why}", "http")));
    for output in &plan.outputs {
        let (word, name) = (output_word(&output.kind), &output.name);
        lines.push(format!("  -> {word:<14}{}  (output {name})", place(&output.kind)));
    }
    for source in plan.sources_with_unread_events() {
        let name = &source.name;
        lines.push(format!(
            "  -> {:<14}filtered: no output takes them, see `staunch explain C040`  (source {name})",
            "events"
        ));
    }
    let sources = plan.sources.iter().zip(listening);
    let mut tip_of = sources.filter_map(|(source, places)| tip(places, source.kind.facts().to_try?));
    let mut tips: Vec<String> = tip_of.next().into_iter().collect();
    // Without an aggregation there are no series.
    let page = match (plan.aggregates().next(), plan.relays().next()) {
        (Some(_), _) => "series",
        (None, Some(_)) => "relay/explain?name=hello.world",
        (None, None) => "accounts",
    };
    // Some shells expand an unquoted `?` to file names.
    let quote = if page.contains('?') { "'" } else { "" };
    tips.extend(http.map(|http| {
        let options = curl_options(&plan.http_server);
        format!("curl {options}{quote}{scheme}://{}/api/v1/{page}{quote}", within(http))
    }));
    tips.extend(http.and_then(|http| render_tip(plan, scheme, http)));
    for (at, tip) in tips.iter().enumerate() {
        lines.push(format!("{:<9}{tip}", if at == 0 { "try it:" } else { "" }));
    }
    lines.join("\n") + "\n"
}

/// A URL for the points of the other tips, if there is a store. With a token or TLS it would not open by a click.
fn render_tip(plan: &Plan, scheme: &str, http: SocketAddr) -> Option<String> {
    let store = plan.outputs.iter().find_map(|output| match &output.kind {
        OutputKind::Whisper(store) => Some(store),
        _ => None,
    })?;
    let server = &plan.http_server;
    let wants_token = server.token_file.is_some() && !plan.graphite_api.open;
    if server.tls.is_some() || wants_token || store.namespace != Namespace::default() {
        return None;
    }
    let target = if plan.aggregates().next().is_some() { "stats_counts.hello.world" } else { "hello.world" };
    Some(format!("{scheme}://{}/render?target={target}&from=-5min", within(http)))
}

/// Warns in the log of each listener that is open to a network without protection, as `staunch check` does.
pub fn warn_of_open_ports(plan: &Plan) {
    for warning in config::open_management(plan).chain(config::open_http(plan)) {
        let hint = warning.hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default();
        tracing::warn!(target: crate::carbon_c_relay::log_targets::NOT_AN_ERROR, "{}{hint} (docs/security.md)", warning.message);
    }
}

/// The text after the name of a source that other machines can reach.
const OPEN: &str = ", open to the network";

/// True for an open address of a source such as `udp://0.0.0.0:8125`.
fn is_open(place: &str) -> bool {
    let address = place.split_once("://").and_then(|(_, address)| address.parse().ok());
    address.is_some_and(config::is_open)
}

/// The options of `curl` for the server. A self-signed certificate is its own authority.
fn curl_options(server: &HttpPlan) -> String {
    let mut options = String::new();
    if let Some(tls) = &server.tls {
        options += &format!("--cacert {} ", quoted(&tls.identity.cert.path));
    }
    if let Some(token) = &server.token_file {
        options += &format!("-H \"Authorization: Bearer $(cat {})\" ", quoted(&token.path));
    }
    options
}

/// A path quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// An address that reaches a listener from this machine.
fn within(at: SocketAddr) -> SocketAddr {
    match at {
        SocketAddr::V4(at) if at.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, at.port()).into(),
        SocketAddr::V6(at) if at.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, at.port()).into(),
        at => at,
    }
}

/// How to send `line` to the first address that a shell can write to: UDP before TCP.
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
    // Not `nc`: recent Debian systems lack it, and bash can redirect to /dev/udp.
    Some(format!("echo \"{line}\" > /dev/{way}/{host}/{port}"))
}

pub(crate) fn place(kind: &OutputKind) -> String {
    match kind.facts().link {
        Link::Stream(StreamLink { to, .. }) | Link::Datagrams { to, .. } => to.to_string(),
        Link::Requests { form: RequestForm::Http(http), .. } => http.shown_url(),
        Link::Requests { form: RequestForm::Mail(mail), .. } => mail.smtp.clone(),
        Link::Requests { form: RequestForm::Riemann(_), to, .. } => to.to_string(),
        Link::File { path, file_bytes_max: 0, .. } => path.display().to_string(),
        Link::File { path, file_bytes_max, files_max, .. } => {
            let most = file_bytes_max * (u64::from(files_max) + 1);
            format!("{} (at most {})", path.display(), client::stdio::bytes(most))
        }
        Link::Store(store) => store.path.display().to_string(),
        Link::Stdout => "standard output".into(),
        Link::Stderr => "standard error".into(),
    }
}

#[cfg(test)]
mod tests {
    use config::plan::ConsoleEncoding;

    use super::*;

    #[test]
    fn a_console_output_prints_to_the_same_stream_as_its_original() {
        let console = |form| place(&OutputKind::Console { form, pretty: false });
        assert_eq!(console(ConsoleEncoding::Node), "standard output");
        assert_eq!(console(ConsoleEncoding::Perl), "standard error");
    }
}

#[test]
fn the_tip_for_curl_has_the_certificate_and_the_token() {
    let text = "[sources.app]\ntype = \"statsd\"\n[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n\
                [outputs.disk]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n\
                [http]\nlisten = \"0.0.0.0:8680\"\n";
    let banner = |more: &str| {
        let text = format!("{text}{more}");
        let source = config::diagnostic::Source { name: "test", text: &text };
        let plan = config::check(source, config::Format::Toml).0.expect("a good file");
        super::banner::text(
            &plan,
            OpenPorts {
                listening: &[],
                http: plan.http,
                http_closed: None,
                management: &[],
                carbonlink: None,
            },
            None,
        )
    };
    let plain = banner("");
    let unread =
        "  -> events        filtered: no output takes them, see `staunch explain C040`  (source app)\n";
    assert!(plain.contains(unread), "{plain}");
    let taken = banner("[outputs.events]\ntype = \"event_file\"\nfrom = [\"app\"]\n");
    assert!(!taken.contains("C040"), "{taken}");
    assert!(plain.contains("curl http://127.0.0.1:8680/api/v1/series\n"), "{plain}");
    assert_eq!(plain.matches("  http ").count(), 1, "{plain}");
    let both = banner("token_file = \"/etc/the token\"\ntls = { cert = \"/etc/http.pem\" }\n");
    let want = "curl --cacert /etc/http.pem -H \"Authorization: Bearer $(cat '/etc/the token')\" \
                https://127.0.0.1:8680/api/v1/series\n";
    assert!(both.contains(want), "{both}");
}

#[test]
fn the_tip_writes_to_an_open_listener() {
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
