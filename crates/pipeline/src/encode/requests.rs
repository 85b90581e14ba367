//! Events as records of requests.
//!
//! Path of an event: `OutputEncoder::event` -> **[`Requests::event`]** -> a line of `wire::request` in the open block.
//! Templates are rendered here, so that a queue contains no events, and a sender knows no templates.

use config::plan::{HttpEncoding, HttpOutputPlan, RECORD_BYTES_MAX};
use model::{CopyOutcome, Dropped, EventRef, Filtered, OutputAccount};
use wire::influxdb::{self, Precision};
use wire::report::event_json_line;
use wire::request::record_line;
use wire::template::{Around, Template};

use crate::encode::open_block::{OpenBlock, drop_points};

/// What one output writes.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Absent when it is the same for all events: the sender has it.
    target: Option<Template>,
    /// The headers that depend on the event, with their names.
    headers: Vec<(String, Template)>,
    body: Body,
    /// Memory for one event.
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Body {
    Json,
    InfluxDb { tags: Vec<String>, precision: Precision },
    Template(Template),
}

impl Requests {
    pub(crate) fn new(plan: &HttpOutputPlan) -> Requests {
        // `config` has compiled them.
        let compiled = |text: &str| Template::parse(text).ok().filter(|template| !template.is_fixed());
        let headers = plan.headers.iter();
        Requests {
            target: plan.target().ok().filter(|template| !template.is_fixed()),
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
        }
        let mut target = Vec::new();
        if let Some(template) = &self.target {
            template.render(event, Around::Url, &mut target);
        }
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let mut header = format!("{name}: ").into_bytes();
            template.render(event, Around::Line, &mut header);
            headers.push(header);
        }
        let bytes = self.scratch.len() + target.len() + headers.iter().map(Vec::len).sum::<usize>();
        if bytes > RECORD_BYTES_MAX {
            return drop_points(account, Dropped::TooBig, 1);
        }
        record_line(&target, headers.iter().map(|header| &header[..]), &self.scratch, &mut open.bytes);
        open.copies += 1;
    }
}
