//! Options of outputs of type `email`, beside those that others have too.

use super::types::{HOUR, duration, whole};
use crate::options::field::{Nested, rows};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Flag, Table, Text, Texts};
use crate::options::section::Section::{OutputEmail, OutputTls};
use crate::plan::EmailPlan;

rows! {
    EMAIL: EmailPlan;
    in [OutputEmail] {
        "smtp" => smtp: Text, Required, "\"smtps://mail.example.org\"",
            "The server: `smtp://HOST:PORT` (port 25 by default), or `smtps://` for TLS from the beginning (465).";
        "starttls" => starttls: Flag, Toml("false"), "true",
            "Encrypt an `smtp://` connection by STARTTLS. If the server cannot, nothing is sent.";
        "user" => user: Text, Absent("no login"), "\"alerts\"",
            "The user of the server.";
        "password" => password: Text, Absent("no login"), "\"secret\"",
            "Its password.",
            "Take it from a file: `\"${file:/etc/staunch/mail}\"`.";
        "sender" => from: Text, Toml("\"riemann\""), "\"alerts@example.org\"",
            "The sender of the mails.";
        "recipients" => to: Texts, Absent("needed unless `from_event` is set"), "[\"ops@example.org\"]",
            "The recipients, at most 100. Each gets every mail.";
        "subject" => subject: Text, Absent("hosts, services and states of the mail's events"), "\"{{service}} is {{state}}\"",
            "The subject, with places for fields. Events with different subjects get different mails.",
            "See [HTTP output](http-output.md#templates) for the places.";
        "body" => body: Text, Absent("all fields of the event, as Riemann writes them"), "\"{{description}}\"",
            "The text for an event, with places for fields.";
        "from_event" => from_event: Flag, Toml("false"), "true",
            "Whether attributes of an event replace the output's, and add `cc`, `bcc`, `sender` and `reply-to`.";
        "max_batch_events" => events_max: whole(1, 10_000), Toml("100"), "1",
            "Most events of a mail.";
        "max_batch_delay" => delay_ms: duration(0, HOUR), Toml("\"1s\""), "\"1m\"",
            "How long events wait for others to share a mail.";
        "tls" => tls as Nested: Table(OutputTls), Depends("`{}` with `smtps://` or `starttls`"), "{ ca = \"/etc/staunch/ca.pem\" }",
            "Authorities and certificates of an encrypted connection.";
    }
}
