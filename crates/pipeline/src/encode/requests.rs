//! Events as records of requests.
//!
//! Path of an event: `OutputEncoder::event` -> **[`Requests::event`]** -> a line of `wire::request` in the open block.
//! Templates are rendered here, so that a queue contains no events, and a sender knows no templates.

use config::plan::{
    EmailPlan, HttpEncoding, HttpOutputPlan, RECORD_BYTES_MAX, RiemannOutputPlan, TARGET_BYTES_MAX,
};
use model::{CopyOutcome, Dropped, EventRef, Filtered, OutputAccount};
use wire::influxdb::{self, Precision};
use wire::mail;
use wire::report::event_json_line;
use wire::request::record_line;
use wire::riemann;
use wire::template::{Around, Template, dot_parts};

use crate::encode::open_block::{OpenBlock, drop_points};

/// What one output writes.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Absent when it is the same for all events: the sender has it.
    target: Option<Template>,
    /// Parts `.` and `..` of the target that no event has chosen.
    own_dot_parts: usize,
    /// The headers that depend on the event, with their names.
    headers: Vec<(String, Template)>,
    body: Body,
    /// Memory for one event.
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Body {
    Json,
    InfluxDb {
        tags: Vec<String>,
        precision: Precision,
    },
    Template(Template),
    Mail(Box<MailForm>),
    /// A field of a message of Riemann: fields one after the other are a message.
    Riemann {
        bytes_max: usize,
    },
}

/// What the records of mails are made of.
#[derive(Debug)]
struct MailForm {
    subject: Option<Template>,
    /// `None` for all fields.
    body: Option<Template>,
    /// Attributes replace the options.
    from_event: bool,
    /// How many recipients the output has.
    recipients: usize,
}

/// The attributes that replace options of a mail, or have none.
const OF_MAIL: [&str; 8] = ["from", "to", "subject", "body", "cc", "bcc", "sender", "reply-to"];

impl Requests {
    pub(crate) fn of_email(plan: &EmailPlan) -> Requests {
        let compiled = |text: &Option<String>| text.as_deref().and_then(|text| Template::parse(text).ok());
        let form = MailForm {
            subject: compiled(&plan.subject),
            body: compiled(&plan.body),
            from_event: plan.from_event,
            recipients: plan.to.len(),
        };
        let body = Body::Mail(Box::new(form));
        Requests { target: None, own_dot_parts: 0, headers: Vec::new(), body, scratch: Vec::new() }
    }

    pub(crate) fn of_riemann(plan: &RiemannOutputPlan) -> Requests {
        let is_udp = plan.to.is_datagram();
        let bytes_max = if is_udp { RiemannOutputPlan::DATAGRAM_BYTES_MAX } else { RECORD_BYTES_MAX };
        let body = Body::Riemann { bytes_max };
        Requests { target: None, own_dot_parts: 0, headers: Vec::new(), body, scratch: Vec::new() }
    }

    pub(crate) fn of_http(plan: &HttpOutputPlan) -> Requests {
        // `config` has compiled them.
        let compiled = |text: &str| Template::parse(text).ok().filter(|template| !template.is_fixed());
        let headers = plan.headers.iter();
        let target = plan.target().ok().filter(|template| !template.is_fixed());
        Requests {
            own_dot_parts: target.as_ref().map_or(0, Template::own_dot_parts),
            target,
            headers: headers.filter_map(|(name, value)| Some((name.clone(), compiled(value)?))).collect(),
            body: match plan.encoding {
                HttpEncoding::Json | HttpEncoding::JsonLines => Body::Json,
                HttpEncoding::InfluxDb => {
                    Body::InfluxDb { tags: plan.tags.clone(), precision: plan.precision }
                }
                HttpEncoding::Template => Template::parse(&plan.body).map_or(Body::Json, Body::Template),
            },
            scratch: Vec::new(),
        }
    }

    /// One event.
    pub(crate) fn event(&mut self, event: EventRef<'_>, account: &OutputAccount, open: &mut OpenBlock) {
        self.scratch.clear();
        match &self.body {
            Body::Json => {
                event_json_line(event, &mut self.scratch);
                // Its line feed.
                self.scratch.pop();
            }
            Body::InfluxDb { tags, precision } => {
                if !influxdb::line(event, tags, *precision, &mut self.scratch) {
                    return account.pass(CopyOutcome::Filtered(Filtered::Unwanted), 1, 0);
                }
                self.scratch.pop();
            }
            Body::Template(template) => template.render(event, Around::Body, &mut self.scratch),
            Body::Mail(form) => return form.event(event, &mut self.scratch, account, open),
            Body::Riemann { bytes_max } => {
                riemann::more_events([event], &mut self.scratch);
                if self.scratch.len() > *bytes_max {
                    return drop_points(account, Dropped::TooBig, 1);
                }
            }
        }
        let mut target = Vec::new();
        if let Some(template) = &self.target {
            template.render(event, Around::Url, &mut target);
        }
        if target.len() > TARGET_BYTES_MAX {
            return drop_points(account, Dropped::TooBig, 1);
        }
        if dot_parts(&target) > self.own_dot_parts {
            return drop_points(account, Dropped::UnsafeName, 1);
        }
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let mut header = format!("{name}: ").into_bytes();
            template.render(event, Around::Line, &mut header);
            headers.push(header);
        }
        push(&target, &headers, &self.scratch, account, open);
    }
}

/// Adds a record, unless it is too long.
fn push(target: &[u8], headers: &[Vec<u8>], body: &[u8], account: &OutputAccount, open: &mut OpenBlock) {
    let bytes = body.len() + target.len() + headers.iter().map(Vec::len).sum::<usize>();
    if bytes > RECORD_BYTES_MAX {
        return drop_points(account, Dropped::TooBig, 1);
    }
    record_line(target, headers.iter().map(|header| &header[..]), body, &mut open.bytes);
    open.copies += 1;
}

impl MailForm {
    /// A record of a mail: its sender, recipients and subject where they are not those of the output, then copies, the sender of the
    /// envelope and where replies go, if it names any of them; and its text.
    fn event(&self, event: EventRef<'_>, text: &mut Vec<u8>, account: &OutputAccount, open: &mut OpenBlock) {
        let own = |key: &str| event.text_attribute(key).filter(|text| self.from_event && !text.is_empty());
        let [from, to, own_subject, own_body, cc, bcc, sender, reply_to] = OF_MAIL.map(own);
        if to.is_none() && self.recipients == 0 {
            return account.pass(CopyOutcome::Filtered(Filtered::Unwanted), 1, 0);
        }
        let named = |to: Option<&str>| to.map_or(0, |to| mail::addresses(to).count());
        if to.map_or(self.recipients, |to| named(Some(to))) + named(cc) + named(bcc)
            > EmailPlan::RECIPIENTS_MAX
        {
            return drop_points(account, Dropped::TooManyRecipients, 1);
        }
        let mut subject = Vec::new();
        match (own_subject, &self.subject) {
            (Some(own), _) => subject.extend_from_slice(own.as_bytes()),
            (None, Some(template)) => template.render(event, Around::Line, &mut subject),
            (None, None) => {}
        }
        match (own_body, &self.body) {
            (Some(own), _) => text.extend_from_slice(own.as_bytes()),
            (None, Some(template)) => template.render(event, Around::Body, text),
            (None, None) => mail::push_text(event, if self.from_event { &OF_MAIL } else { &[] }, text),
        }
        let mut body = Vec::with_capacity(text.len());
        mail::push_record(event, text, &mut body);
        let mut headers = vec![to.unwrap_or("").as_bytes().to_vec(), subject];
        let more = [cc, bcc, sender, reply_to];
        if more.iter().any(Option::is_some) {
            headers.extend(more.map(|text| text.unwrap_or("").as_bytes().to_vec()));
        }
        push(from.unwrap_or("").as_bytes(), &headers, &body, account, open);
    }
}

#[test]
fn an_event_without_a_target_of_its_own_is_dropped_at_once() {
    use model::{EventsBuilder, TextField};

    let url = "http://127.0.0.1/{{host}}/in";
    let around = "//in".len();
    let plan = HttpOutputPlan { url: url.to_owned(), ..HttpOutputPlan::default() };
    let mut requests = Requests::of_http(&plan);
    for (host, dropped) in [
        ("x".repeat(TARGET_BYTES_MAX - around), None),
        ("x".repeat(TARGET_BYTES_MAX - around + 1), Some(Dropped::TooBig)),
        ("é".repeat(12_000), Some(Dropped::TooBig)),
        ("..".to_owned(), Some(Dropped::UnsafeName)),
        (".".to_owned(), Some(Dropped::UnsafeName)),
        ("a..b".to_owned(), None),
    ] {
        let mut events = EventsBuilder::default();
        let mut event = events.event();
        event.plain_text(TextField::Host, &host);
        event.finish();
        let (account, mut open) = (OutputAccount::default(), OpenBlock::default());
        for event in events.view().iter() {
            requests.event(event, &account, &mut open);
        }
        let shown = &host[..host.len().min(10)];
        assert_eq!(open.copies(), u32::from(dropped.is_none()), "{shown}");
        assert_eq!(open.bytes.is_empty(), dropped.is_some(), "{shown}");
        for reason in [Dropped::TooBig, Dropped::UnsafeName] {
            assert_eq!(account.dropped(reason), u64::from(dropped == Some(reason)), "{shown} {reason:?}");
        }
    }
}
