//! Outputs that a Riemann config declares, as outputs of the plan.

use streams::riemann::declared::{Mailer, Output, Post, PostForm, TimeUnit, TlsFiles, Transport};
use wire::graphite::Namespace;
use wire::influxdb::Precision;

use crate::plan::{
    Compression, Destination, EmailPlan, Endpoint, EndpointTls, GraphiteEncoding, HttpEncoding,
    HttpOutputPlan, Identity, OutputKind, PemFile, RiemannOutputPlan,
};

/// What an output is; none for one of the native config.
///
/// # Errors
/// Why it cannot be used, for people.
pub(super) fn kind(output: &Output) -> Option<Result<OutputKind, String>> {
    let at = |host: &str, port: u16| Endpoint { host: host.to_owned(), port };
    Some(match output {
        Output::Graphite { host, port, transport } => Ok(graphite(at(host, *port), *transport)),
        Output::Riemann { host, port, transport, tls, skip_hostname_check } => {
            Ok(riemann(at(host, *port), *transport, tls.as_ref(), *skip_hostname_check))
        }
        Output::Post(post) => http(post),
        Output::Mail(mailer) => mail(mailer),
        Output::Named(_) => return None,
    })
}

/// Whether people are notified by it.
pub(super) fn is_notification(output: &Output) -> bool {
    match output {
        Output::Post(post) => post.is_notification,
        Output::Mail(_) => true,
        Output::Graphite { .. } | Output::Riemann { .. } | Output::Named(_) => false,
    }
}

/// An output of the mails of a config: each push is a mail.
fn mail(mailer: &Mailer) -> Result<OutputKind, String> {
    let mut plan = EmailPlan {
        smtp: mailer.smtp.to_string(),
        starttls: mailer.starttls,
        user: mailer.user.as_ref().map(ToString::to_string),
        password: mailer.password.as_ref().map(ToString::to_string),
        from_event: true,
        events_max: 1,
        delay_ms: 0,
        ..EmailPlan::default()
    };
    let (is_encrypted, _) = plan.server().map_err(|why| format!("the mail server cannot be used: {why}"))?;
    if is_encrypted || plan.starttls {
        plan.tls = Some(Box::default());
    }
    Ok(OutputKind::Email(Box::new(plan)))
}

/// An output of the requests of a config: with Riemann's timeout of 5 s, one for each push.
fn http(post: &Post) -> Result<OutputKind, String> {
    let text = |text: &str| text.to_owned();
    let mut plan = HttpOutputPlan {
        url: text(&post.url),
        headers: post.headers.iter().map(|(name, value)| (text(name), text(value))).collect(),
        encoding: HttpEncoding::Template,
        body: "{{staunch.body}}".to_owned(),
        ..HttpOutputPlan::default()
    };
    plan.sender.write_timeout_ms = 5_000;
    if let PostForm::InfluxDb { tags, unit } = &post.form {
        plan.encoding = HttpEncoding::InfluxDb;
        plan.tags = tags.iter().map(|tag| text(tag)).collect();
        plan.precision = match unit {
            TimeUnit::Seconds => Precision::Seconds,
            TimeUnit::Milliseconds => Precision::Milliseconds,
            TimeUnit::Microseconds => Precision::Microseconds,
        };
    }
    let parts = plan.parts().map_err(|why| format!("the URL of the output cannot be used: {why}"))?;
    plan.target().map_err(|mistake| format!("the URL of the output has a mistake: {}", mistake.what))?;
    if parts.is_encrypted {
        plan.tls = Some(Box::default());
    }
    Ok(OutputKind::Http(Box::new(plan)))
}

/// An output to another Riemann.
fn riemann(
    to: Endpoint,
    transport: Transport,
    tls: Option<&TlsFiles>,
    skip_hostname_check: bool,
) -> OutputKind {
    let to = match transport {
        Transport::Tcp => Destination::Tcp(to),
        Transport::Udp => Destination::Udp(to),
    };
    let pem = |path: &str| PemFile::new(path);
    let tls = tls.map(|files| {
        let identity = Identity { cert: pem(&files.cert), key: pem(&files.key) };
        let (ca, identity) = (Some(pem(&files.ca_cert)), Some(identity));
        Box::new(EndpointTls { ca, identity, server_name: None, skip_hostname_check })
    });
    OutputKind::Riemann(Box::new(RiemannOutputPlan { tls, ..RiemannOutputPlan::new(to) }))
}

fn graphite(to: Endpoint, transport: Transport) -> OutputKind {
    let (namespace, sender) = (Namespace::default(), deliver::plan::SenderPlan::default());
    match transport {
        Transport::Tcp => OutputKind::Graphite {
            to,
            form: GraphiteEncoding::Lines,
            namespace,
            sender,
            connections: 1,
            line_bytes_max: OutputKind::LINE_BYTES_MAX,
            compression: Compression::Plain,
            tls: None,
        },
        Transport::Udp => OutputKind::GraphiteDatagrams { to, syslog: false, namespace, sender },
    }
}
