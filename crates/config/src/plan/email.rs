//! An output that sends events by mail.

use deliver::plan::{BatchPlan, SenderPlan};

use super::http_output::REQUEST_BYTES_MAX;
use super::{Endpoint, EndpointTls};
use crate::address::{loopback_addresses, parse_host_port};

/// An output of type `email`. Its texts are checked: they compile.
#[derive(Clone, Debug, PartialEq)]
pub struct EmailPlan {
    /// The server: `smtp://host:25` or `smtps://host:465`.
    pub smtp: String,
    /// Whether the connection is encrypted after its beginning: nothing is sent if the server cannot.
    pub starttls: bool,
    /// The user, if the server wants one.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// The sender.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The subject for an event; `None` for hosts, services and states of all events of the mail.
    pub subject: Option<String>,
    /// The text for an event; `None` for all of its fields.
    pub body: Option<String>,
    /// Whether attributes of an event replace sender, recipients, subject and body.
    pub from_event: bool,
    /// Most events of a mail.
    pub events_max: u32,
    /// How long events wait for others, in milliseconds.
    pub delay_ms: u64,
    /// TLS of its connections; always with `smtps` and `starttls`.
    pub tls: Option<Box<EndpointTls>>,
    /// Retries and time-outs; `write_timeout_ms` is that of each step of the dialogue together.
    pub sender: SenderPlan,
}

impl Default for EmailPlan {
    fn default() -> Self {
        let sender = SenderPlan { write_timeout_ms: EmailPlan::TIMEOUT_MS, ..SenderPlan::default() };
        EmailPlan {
            smtp: String::new(),
            starttls: false,
            user: None,
            password: None,
            from: "riemann".to_owned(),
            to: Vec::new(),
            subject: None,
            body: None,
            from_event: false,
            events_max: EmailPlan::EVENTS_MAX,
            delay_ms: 1_000,
            tls: None,
            sender,
        }
    }
}

impl EmailPlan {
    /// Default of `max_batch_events`.
    pub const EVENTS_MAX: u32 = 100;

    /// Default of `timeout`.
    pub const TIMEOUT_MS: u64 = 10_000;

    /// Most recipients of a mail.
    pub const RECIPIENTS_MAX: usize = model::limits::MAIL_RECIPIENTS_MAX;

    /// Whether the connection is encrypted from its beginning, and the server.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn server(&self) -> Result<(bool, Endpoint), String> {
        let (is_encrypted, rest) =
            match (self.smtp.strip_prefix("smtp://"), self.smtp.strip_prefix("smtps://")) {
                (Some(rest), _) => (false, rest),
                (None, Some(rest)) => (true, rest),
                (None, None) => return Err("it begins with neither smtp:// nor smtps://".to_owned()),
            };
        if rest.contains('@') {
            return Err("user and password have options of their own: `user` and `password`".to_owned());
        }
        let rest = rest.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if is_encrypted { 465 } else { 25 };
        let with_port = if has_port { rest.to_owned() } else { format!("{rest}:{port}") };
        parse_host_port(&with_port).map(|to| (is_encrypted, to)).map_err(|bad| bad.label)
    }

    /// Whether others can read its password on the way.
    pub fn shows_password(&self) -> bool {
        let is_here = |host: &str| {
            let ip: Result<std::net::IpAddr, _> = host.trim_matches(['[', ']']).parse();
            ip.is_ok_and(|ip| ip.is_loopback()) || !loopback_addresses(host).is_empty()
        };
        let in_clear = self
            .server()
            .is_ok_and(|(is_encrypted, to)| !is_encrypted && !self.starttls && !is_here(&to.host));
        in_clear && self.user.is_some() && self.password.is_some()
    }

    /// Limits of a mail.
    pub fn batch(&self) -> BatchPlan {
        BatchPlan { records_max: self.events_max, bytes_max: REQUEST_BYTES_MAX, delay_ms: self.delay_ms }
    }

    /// Its host and port.
    pub fn endpoint(&self) -> Endpoint {
        self.server().map_or_else(|_bad| Endpoint { host: String::new(), port: 0 }, |(_, to)| to)
    }
}
