//! An output that posts events to an HTTP server.

use deliver::plan::{BatchPlan, SenderPlan};
use wire::influxdb::Precision;
use wire::template::{Mistake, Template};

use super::{Endpoint, EndpointTls};
use crate::address::parse_host_port;

/// Longest piece of a request for one event, rendered: longer ones are dropped as `too_big`.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Longest path with query, rendered: longer ones are dropped as `too_big`. Few servers take more than 8 KiB; 64 KiB is no URL for
/// our client.
pub const TARGET_BYTES_MAX: usize = 32 << 10;

/// Most bytes of the body of a request, as they are queued; a single event may be larger.
pub const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// An output of type `http`. Its texts are checked: they compile.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpOutputPlan {
    /// Where to: scheme, host, port, path and query. Path and query may have places for fields of the event.
    pub url: String,
    /// The method of its requests.
    pub method: HttpMethod,
    /// Names and values of headers; values may have places for fields.
    pub headers: Vec<(String, String)>,
    /// The form of the body.
    pub encoding: HttpEncoding,
    /// The body of `template`.
    pub body: String,
    /// The tags of `influxdb`.
    pub tags: Vec<String>,
    /// The precision of times of `influxdb`.
    pub precision: Precision,
    /// Most events of a request; `None` for the default of the encoding.
    pub events_max: Option<u32>,
    /// How long events wait for others, in milliseconds.
    pub delay_ms: u64,
    /// TLS of its connections; always with `https`.
    pub tls: Option<Box<EndpointTls>>,
    /// Retries and time-outs; `write_timeout_ms` is that of a request.
    pub sender: SenderPlan,
}

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEncoding {
    /// An array of JSON objects.
    Json,
    /// JSON objects, each on a line.
    JsonLines,
    /// InfluxDB's line protocol.
    InfluxDb,
    /// A text with places for fields.
    Template,
}

/// The method of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlParts {
    /// `https`.
    pub is_encrypted: bool,
    /// Host and port.
    pub to: Endpoint,
    /// The value of the header `Host`.
    pub authority: String,
    /// Path and query; at least `/`.
    pub target: String,
}

impl HttpOutputPlan {
    /// An output without a URL, with the defaults.
    pub fn new() -> HttpOutputPlan {
        HttpOutputPlan {
            url: String::new(),
            method: HttpMethod::Post,
            headers: Vec::new(),
            encoding: HttpEncoding::Json,
            body: String::new(),
            tags: vec!["host".to_owned()],
            precision: Precision::Nanoseconds,
            events_max: None,
            delay_ms: 1_000,
            tls: None,
            sender: SenderPlan::default(),
        }
    }

    /// The parts of its URL.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn parts(&self) -> Result<UrlParts, String> {
        let (is_encrypted, rest) = match (self.url.strip_prefix("http://"), self.url.strip_prefix("https://"))
        {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err("it begins with neither http:// nor https://".to_owned()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(
                "user and password belong to a header: headers = { Authorization = \"Basic …\" }".to_owned()
            );
        }
        if authority.contains("{{") {
            return Err("the host cannot depend on the event".to_owned());
        }
        if target.contains('#') || !target.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
            return Err("path and query are ASCII without a fragment".to_owned());
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if is_encrypted { 443 } else { 80 };
        let with_port = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let to = parse_host_port(&with_port).map_err(|bad| bad.label)?;
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(UrlParts { is_encrypted, to, authority: authority.to_owned(), target })
    }

    /// Scheme and host for people: path and query of many services are secrets.
    pub fn shown_url(&self) -> String {
        let end = self.url.match_indices('/').nth(2).map_or(self.url.len(), |(at, _)| at);
        self.url[..end].split('?').next().unwrap_or_default().to_owned()
    }

    /// Path and query as a template.
    ///
    /// # Errors
    /// When they are none.
    pub fn target(&self) -> Result<Template, Mistake> {
        let target = self.parts().map_or_else(|_bad| "/".to_owned(), |parts| parts.target);
        Template::parse(&target)
    }

    /// Limits of a request.
    pub fn batch(&self) -> BatchPlan {
        let default = if self.encoding == HttpEncoding::Template { 1 } else { HttpOutputPlan::EVENTS_MAX };
        BatchPlan {
            records_max: self.events_max.unwrap_or(default),
            bytes_max: REQUEST_BYTES_MAX,
            delay_ms: self.delay_ms,
        }
    }

    /// Default of `max_batch_events` unless each event has a request of its own.
    pub const EVENTS_MAX: u32 = 1_000;

    /// Its host and port.
    pub fn endpoint(&self) -> Endpoint {
        self.parts().map_or_else(|_bad| Endpoint { host: String::new(), port: 0 }, |parts| parts.to)
    }
}

impl Default for HttpOutputPlan {
    fn default() -> Self {
        HttpOutputPlan::new()
    }
}

impl HttpEncoding {
    /// Its word in config files.
    pub fn word(self) -> &'static str {
        match self {
            HttpEncoding::Json => "json",
            HttpEncoding::JsonLines => "json_lines",
            HttpEncoding::InfluxDb => "influxdb",
            HttpEncoding::Template => "template",
        }
    }

    /// The header `Content-Type` unless `headers` has one.
    pub fn content_type(self) -> &'static str {
        match self {
            HttpEncoding::Json | HttpEncoding::Template => "application/json",
            HttpEncoding::JsonLines => "application/x-ndjson",
            HttpEncoding::InfluxDb => "text/plain; charset=utf-8",
        }
    }
}
