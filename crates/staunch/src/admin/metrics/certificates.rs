//! Expiry of the daemon's own certificates.

use model::{Now, SECOND_NS};

use super::family::family;
use tls::{Expiry, Whose};

/// Seconds until each expiry, according to the file when it was read.
pub(super) fn all(out: &mut String, expiries: &[Expiry], now: Now) {
    let now_s = (now.wall_ns / SECOND_NS) as f64;
    let left = |expiry: &Expiry| expiry.at_s as f64 - now_s;
    let help = "Seconds until the certificate of a source expires.";
    let mut rows = family(out, "staunch_source_certificate_expires_in_seconds", "gauge", help);
    for expiry in expiries {
        if let Whose::Source(name) = &expiry.whose {
            rows.row(&[("source", name)], left(expiry));
        }
    }
    let help = "Seconds until the client certificate of an output expires.";
    let mut rows = family(out, "staunch_output_certificate_expires_in_seconds", "gauge", help);
    for expiry in expiries {
        if let Whose::Output(name) = &expiry.whose {
            rows.row(&[("output", name)], left(expiry));
        }
    }
    let help = "Seconds until the certificate of the HTTP server expires.";
    let mut rows = family(out, "staunch_http_certificate_expires_in_seconds", "gauge", help);
    for expiry in expiries.iter().filter(|expiry| expiry.whose == Whose::Http) {
        rows.row(&[], left(expiry));
    }
}
