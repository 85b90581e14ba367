//! From a checked `[outputs.NAME]` of type `email` to its plan: checks of its server, addresses and templates.

use super::asked::{Asked, Outputs, sender};
use super::fields::Fields;
use super::http_output::check_template;
use super::transport;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::table::email::EMAIL;
use crate::plan::{EmailPlan, OutputKind};

/// An output that sends mails.
pub(super) fn outputs(asked: &Asked<'_>, mut kind: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    if let OutputKind::Email(plan) = &mut kind {
        fields.fill(&mut **plan, &EMAIL);
        plan.sender = sender(fields, wrong);
        check_server(plan, fields, wrong);
        check_addresses(plan, fields, wrong);
        for (key, text) in [("subject", &plan.subject), ("body", &plan.body)] {
            if let Some(text) = text {
                check_template(key, text, fields, wrong);
            }
        }
    }
    (vec![asked.output(name.to_owned(), kind, fields.at("smtp"))], None)
}

fn check_server(plan: &mut EmailPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    if fields.value::<String>("smtp").is_none() {
        return;
    }
    let is_encrypted = match plan.server() {
        Ok((is_encrypted, _)) => is_encrypted,
        Err(label) => return fields.wrong("smtp", Code::BadValue, "`smtp` is no server", label, wrong),
    };
    if is_encrypted && plan.starttls {
        let label = "a connection of smtps:// is encrypted from its beginning";
        fields.wrong("starttls", Code::BadValue, "`starttls` is for smtp://", label, wrong);
    }
    if is_encrypted || plan.starttls {
        plan.tls.get_or_insert_default();
    } else if plan.tls.is_some() {
        let label = "write `starttls = true` beside it, or `smtps://`";
        fields.wrong("tls", Code::BadValue, "`tls` is for encrypted connections", label, wrong);
    }
    transport::check_endpoint(plan.tls.as_deref(), fields, wrong);
    if plan.shows_password() {
        let warning = Diagnostic::warning(Code::PasswordClear, "`password` is sent in clear text");
        let warning = warning.at(fields.at("smtp")).label("not encrypted, and not a loopback address");
        wrong.push(warning.hint("write `starttls = true` beside it, or `smtps://`"));
    }
    for (key, other, is_alone) in [
        ("user", "password", plan.user.is_some() && plan.password.is_none()),
        ("password", "user", plan.password.is_some() && plan.user.is_none()),
    ] {
        if is_alone {
            let message = format!("`{key}` is set without `{other}`");
            fields.wrong(key, Code::MissingKey, message, format!("`{other}` is missing"), wrong);
        }
    }
}

fn check_addresses(plan: &EmailPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    if !is_address(&plan.from) {
        fields.wrong("sender", Code::BadValue, "`sender` is no address", "name@example.org", wrong);
    }
    for (to, place) in fields.texts("recipients") {
        if !is_address(to) {
            let message = format!("`{to}` is no address");
            wrong.push(Diagnostic::error(Code::BadValue, message).at(*place).label("name@example.org"));
        } else if !to.contains('@') {
            let message = format!("the address `{to}` has no domain");
            let label = "completed with the name of the machine";
            wrong.push(Diagnostic::warning(Code::LocalAddress, message).at(*place).label(label));
        }
    }
    if plan.to.len() > EmailPlan::RECIPIENTS_MAX {
        let label = format!("a mail has at most {} recipients", EmailPlan::RECIPIENTS_MAX);
        fields.wrong("recipients", Code::OutOfRange, "there are too many recipients", label, wrong);
    }
    if plan.to.is_empty() && !plan.from_event {
        let hint = "write recipients = [\"ops@example.org\"], or from_event = true";
        let missing = Diagnostic::error(Code::MissingKey, "`recipients` is missing");
        wrong.push(missing.at(fields.place).label("nobody gets its mails").hint(hint));
    }
}

/// Whether mail can be sent to it: names without a domain are local ones.
fn is_address(text: &str) -> bool {
    let is_safe = |c: char| !c.is_whitespace() && !c.is_control() && !"<>,;:\"()[]\\".contains(c);
    let (name, domain) = text.rsplit_once('@').unwrap_or((text, "localhost"));
    !name.is_empty() && !domain.is_empty() && text.chars().all(is_safe) && !name.contains('@')
}
