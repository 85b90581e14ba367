//! The validity dates of our own certificates: those of listeners, and those of outputs for their endpoints.
//!
//! The peer decides whether they are valid, so dates cause warnings and figures, never errors.

use config::diagnostic::{Code, Diagnostic};
use config::plan::{Identity, Link, PemFile, Plan, StreamLink};
use rustls::pki_types::CertificateDer;
use wire::report::numeric_date;
use x509_parser::parse_x509_certificate;

use super::files;

/// The part of the plan that presents a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A source, by name.
    Source(String),
    /// An output, by name.
    Output(String),
    /// The HTTP server.
    Http,
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whose::Source(name) => write!(f, "source `{name}`"),
            Whose::Output(name) => write!(f, "output `{name}`"),
            Whose::Http => f.write_str("`http`"),
        }
    }
}

/// When a certificate expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The part of the plan that presents it.
    pub whose: Whose,
    /// Unix seconds; for a chain, the earliest expiry.
    pub at_s: i64,
}

/// Unix seconds of a certificate's validity.
struct Validity {
    from_s: i64,
    until_s: i64,
}

impl Validity {
    /// `None` for an unreadable certificate: the peer decides about it.
    fn of(cert: &CertificateDer<'_>) -> Option<Validity> {
        let (_rest, cert) = parse_x509_certificate(cert).ok()?;
        let dates = cert.validity();
        Some(Validity { from_s: dates.not_before.timestamp(), until_s: dates.not_after.timestamp() })
    }

    /// The invalid date at a time, if any, and the advice.
    fn wrong_at(&self, now_s: i64) -> Option<(&'static str, String, &'static str)> {
        if now_s > self.until_s {
            let hint = "renew it and reload with SIGHUP; peers that check the date reject it";
            return Some(("has expired", format!("expired on {}", date(self.until_s)), hint));
        }
        let hint = "check the clock of this machine, or wait: peers that check the date reject it";
        let from = || ("is not valid yet", format!("valid from {}", date(self.from_s)), hint);
        (now_s < self.from_s).then(from)
    }
}

fn date(unix_s: i64) -> String {
    format!("{} UTC", numeric_date(unix_s.max(0).unsigned_abs()))
}

/// All certificates that a plan presents to peers.
fn identities(plan: &Plan) -> impl Iterator<Item = (Whose, &Identity)> {
    let sources =
        plan.sources.iter().filter(|source| !source.listen.is_empty()).filter_map(|source| {
            Some((Whose::Source(source.name.clone()), &source.tls.as_deref()?.identity))
        });
    let outputs = plan.outputs.iter().filter_map(|output| match output.kind.facts().link {
        Link::Stream(StreamLink { tls, .. }) => {
            Some((Whose::Output(output.name.clone()), tls?.identity.as_ref()?))
        }
        Link::Requests { form, .. } => {
            Some((Whose::Output(output.name.clone()), form.tls()?.identity.as_ref()?))
        }
        Link::Datagrams { .. } | Link::File { .. } | Link::Store(_) | Link::Stdout | Link::Stderr => None,
    });
    let http = plan.http.and(plan.http_server.tls.as_deref());
    sources.chain(outputs).chain(http.map(|tls| (Whose::Http, &tls.identity)))
}

fn validities(file: &PemFile) -> Vec<Validity> {
    let chain = files::certificates(file).unwrap_or_default();
    chain.iter().filter_map(Validity::of).collect()
}

/// The expiry of each certificate of a plan. Unreadable files are left out: `Certificates` reports them.
pub(super) fn expiries(plan: &Plan) -> Vec<Expiry> {
    let expiry = |(whose, identity): (Whose, &Identity)| {
        let at_s = validities(&identity.cert).iter().map(|dates| dates.until_s).min()?;
        Some(Expiry { whose, at_s })
    };
    identities(plan).filter_map(expiry).collect()
}

/// Warnings about certificates that are not valid at a time, with the index of the config file that names them. A
/// certificate that several sources or outputs share causes one warning.
pub(super) fn warnings(plan: &Plan, now_s: u64) -> Vec<(usize, Diagnostic)> {
    let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
    let (mut seen, mut warnings) = (Vec::new(), Vec::new());
    for (whose, Identity { cert: file, .. }) in identities(plan) {
        if seen.contains(&file) {
            continue;
        }
        seen.push(file);
        let dates = validities(file);
        let wrong = dates.iter().enumerate().find_map(|(at, dates)| Some((at, dates.wrong_at(now_s)?)));
        let Some((at, (what, when, hint))) = wrong else { continue };
        let which = if at == 0 { "the certificate" } else { "a certificate in the chain" };
        let warning = Diagnostic::warning(Code::CertificateDates, format!("{which} of {whose} {what}"))
            .label(format!("{}: {when}", file.path.display()))
            .hint(hint);
        warnings.push((file.file, file.place.map_or(warning.clone(), |place| warning.at(place))));
    }
    warnings
}
