//! From a checked `[outputs.NAME]` of type `riemann` to its plans: one for each endpoint.

use super::asked::{Asked, Outputs, endpoint_name, endpoints, sender};
use super::transport;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::table::riemann_output::RIEMANN_OUTPUT;
use crate::plan::OutputKind;

/// Outputs to other Riemanns.
pub(super) fn outputs(asked: &Asked<'_>, mut kind: OutputKind, wrong: &mut Vec<Diagnostic>) -> Outputs {
    let Asked { name, fields, .. } = *asked;
    if let OutputKind::Riemann(plan) = &mut kind {
        fields.fill(&mut **plan, &RIEMANN_OUTPUT);
        plan.sender = sender(fields, wrong);
        transport::check_endpoint(plan.tls.as_deref(), fields, wrong);
    }
    let endpoints = endpoints(fields);
    if let Some((_, place)) = endpoints.iter().find(|(to, _)| to.is_datagram())
        && fields.place_of("tls").is_some()
    {
        let hint = "remove it, or give the `udp://` endpoints a section of their own";
        let mistake = Diagnostic::error(Code::BadValue, "`tls` is for streams");
        wrong.push(mistake.at(*place).label("this endpoint takes datagrams").hint(hint));
    }
    let split = endpoints.len() > 1;
    let each = endpoints.iter().map(|(to, place)| {
        let name = if split { endpoint_name(name, to) } else { name.to_owned() };
        asked.output(name, kind.with_destination(to), *place)
    });
    (each.collect(), None)
}
