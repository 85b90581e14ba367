//! Checks `listen`: limits, and listeners that collide.

use super::Check;
use crate::relay::document::*;
use crate::relay::host;
use crate::relay::mistakes::UpstreamAt;
use crate::relay::syntax::{ReceptorSyntax, Word};
use config::diagnostic::Code;

/// Most receptors, as in the original.
const RECEPTORS_MAX: usize = 32;

impl Check<'_> {
    pub(super) fn listen(
        &mut self,
        compression: Compression,
        tls: Option<ListenTls>,
        syntax: Vec<ReceptorSyntax>,
    ) {
        let stream = compression != Compression::Plain || tls.is_some();
        let mut receptors = Vec::new();
        for each in syntax {
            let Some(receptor) = self.receptor(&each, stream) else { continue };
            let span = each.address.span;
            let known = self.conf.listen.iter().flat_map(|listener| &listener.receptors).chain(&receptors);
            if known.clone().count() == RECEPTORS_MAX {
                self.too_many(span, RECEPTORS_MAX, "listeners").label("one too many");
                return;
            }
            let twice = known.into_iter().find_map(|other| collision(other, &receptor));
            if let Some(upstream) = twice {
                let message = format!("`{}` has two listeners", each.address.text);
                let report = self.mistakes.error(Code::AddressTaken, span, message).label("taken above");
                let report = report.hint("a port without an address means that port on every address");
                report.upstream_at(self.semicolon, upstream);
                continue;
            }
            receptors.push(receptor);
        }
        if let Some(ListenTls { min: Some(min), max: Some(max), .. }) = &tls
            && min > max
            && let Some(cluster) = receptors.first()
        {
            let message = format!("`protomin {}` is newer than `protomax {}`", min.word(), max.word());
            self.mistakes.whole(Code::ImportBadValue, message).label(format!("for {}", show(cluster)));
        }
        match self.conf.listen.last_mut() {
            _ if receptors.is_empty() => {}
            // Listeners that differ only in their statement are one group, as the original prints it.
            Some(last) if last.compression == compression && last.tls == tls => {
                last.receptors.extend(receptors)
            }
            _ => self.conf.listen.push(Listener { compression, tls, receptors }),
        }
    }

    fn receptor(&mut self, syntax: &ReceptorSyntax, stream: bool) -> Option<Receptor> {
        let Word { text, span } = &syntax.address;
        let Some(proto) = syntax.proto else {
            if stream {
                let message = "a unix socket with a transport of its own";
                let report = self.mistakes.warning(Code::ImportNoEffect, *span, message);
                report.label("clients must compress what they write to it");
            }
            return Some(Receptor::Unix(text.clone()));
        };
        if stream && proto == Proto::Udp {
            self.datagrams(*span, "give it a `listen` statement of its own, without the transport");
            return None;
        }
        if text.contains('/') {
            let message = format!("`{text}` is a path, not an address");
            let report = self.mistakes.error(Code::ImportBadValue, *span, message);
            let report = report.label("no host and port");
            let report = report.hint(format!("a path is a unix socket: {text} proto unix"));
            let upstream = format!("invalid listener {text} for port {}", host::PORT);
            report.upstream_at(self.semicolon, upstream);
            return None;
        }
        let split = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            host::port(text).map(|port| (None, port))
        } else {
            host::split(text).map(|(host, port)| (Some(host.to_owned()), port))
        };
        match split {
            Ok((host, port)) => Some(Receptor::Port { host, port, proto }),
            Err(wrong) => {
                wrong.report(self.mistakes, *span, UpstreamAt::Here);
                None
            }
        }
    }
}

fn show(receptor: &Receptor) -> String {
    match receptor {
        Receptor::Port { host: Some(host), port, .. } => format!("{}:{port}", host::bracketed(host)),
        Receptor::Port { host: None, port, .. } => port.to_string(),
        Receptor::Unix(path) => path.clone(),
    }
}

/// The original's message when both cannot be bound.
fn collision(first: &Receptor, second: &Receptor) -> Option<String> {
    const ANY: &str = "0.0.0.0";
    const ANY_V6: &str = "::";
    match (first, second) {
        (Receptor::Unix(one), Receptor::Unix(other)) if one == other => {
            Some(format!("duplicate listener {one}"))
        }
        (
            Receptor::Port { host, port, proto },
            Receptor::Port { host: other_host, port: other_port, proto: other_proto },
        ) if port == other_port && proto == other_proto => {
            let (one, other) = (host.as_deref().unwrap_or(ANY), other_host.as_deref().unwrap_or(ANY));
            let any = host.is_none() || other_host.is_none() || one == ANY && !other.contains(':');
            let any = any || other == ANY && !one.contains(':');
            let any = any || one == ANY_V6 && other.contains(':') || other == ANY_V6 && one.contains(':');
            (any || one == other).then(|| format!("duplicate listener {other} with {one} for port {port}"))
        }
        _ => None,
    }
}
