//! From a checked `[outputs.NAME]` of type `http` to its plan: checks of its URL, headers and templates.

use wire::template::Template;

use super::asked::{Asked, Outputs, sender};
use super::fields::Fields;
use super::transport;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::table::http_output::HTTP_OUTPUT;
use crate::plan::{HttpEncoding, HttpOutputPlan, OutputKind};

/// Headers that each request has, and no other value.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// An output to an HTTP server.
pub(super) fn outputs(asked: &Asked<'_>, mut kind: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    if let OutputKind::Http(plan) = &mut kind {
        fields.fill(&mut **plan, &HTTP_OUTPUT);
        plan.sender = sender(fields, wrong);
        check_url(plan, fields, wrong);
        check_headers(plan, fields, wrong);
        check_body(plan, fields, wrong);
    }
    (vec![asked.output(name.to_owned(), kind, fields.at("url"))], None)
}

fn check_url(plan: &mut HttpOutputPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    if fields.value::<String>("url").is_none() {
        return;
    }
    let parts = match plan.parts() {
        Ok(parts) => parts,
        Err(label) => return fields.wrong("url", Code::BadValue, "`url` is no URL", label, wrong),
    };
    check_template("url", &parts.target, fields, wrong);
    if parts.is_encrypted {
        plan.tls.get_or_insert_default();
    } else if plan.tls.is_some() {
        let label = "the URL begins with http://, so its connections are not encrypted";
        fields.wrong("tls", Code::BadValue, "`tls` is for https", label, wrong);
    }
    transport::check_endpoint(plan.tls.as_deref(), fields, wrong);
}

fn check_headers(plan: &HttpOutputPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    for (name, value) in &plan.headers {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let mut mistake = |message: String, label: &str| {
            fields.wrong("headers", Code::BadValue, message, label, wrong);
        };
        if name.is_empty() || !name.bytes().all(is_token) {
            mistake(format!("`{name}` is no name of a header"), "letters, digits and dashes");
        } else if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            mistake(format!("the header `{name}` cannot be set"), "it follows from the request");
        } else if plan.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count() > 1 {
            mistake(format!("the header `{name}` is given twice"), "in another case");
        } else if value.bytes().any(|byte| byte.is_ascii_control()) {
            // The value may be a secret: it is not shown.
            mistake(format!("the header `{name}` contains a control character"), "perhaps a line feed");
        } else {
            check_template("headers", value, fields, wrong);
        }
    }
}

fn check_body(plan: &HttpOutputPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    if plan.encoding == HttpEncoding::Template {
        if fields.place_of("body").is_none() {
            let hint = "write body = \"{\\\"text\\\": \\\"{{description|json}}\\\"}\"";
            let missing = Diagnostic::error(Code::MissingKey, "`body` is missing");
            wrong.push(missing.at(fields.at("encoding")).label("`template` needs it").hint(hint));
        }
        check_template("body", &plan.body, fields, wrong);
    } else {
        fields.ignored("body", "`body` has no effect: the encoding is not `template`", wrong);
    }
    if plan.encoding != HttpEncoding::InfluxDb {
        for key in ["tags", "precision"] {
            fields.ignored(key, format!("`{key}` has no effect: the encoding is not `influxdb`"), wrong);
        }
    }
}

pub(super) fn check_template(key: &str, text: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    if let Err(mistake) = Template::parse(text) {
        let message = format!("`{key}` has a mistake at `{}`", mistake.written);
        let mistaken = Diagnostic::error(Code::BadValue, message).at(fields.at(key));
        wrong.push(mistaken.label(mistake.what).hint(mistake.hint));
    }
}
