//! Hash rings of the Graphite family: a hundred points per endpoint (spec graphite §3.1, §3.2 and §3.5); with
//! carbon's `fast-hashing` one point each, of which only the order matters.
//!
//! Not here: failover for the keys of an endpoint that is down. These rings are built once, from all endpoints.
//! Invariant: a ring with an endpoint owns every key, and the owners of one key are distinct.

use md5::{Digest as _, Md5};

use super::fnv::{Bytes, fnv1a_16};
use super::label::Label;
use super::method::CarbonHash;
use super::shards::murmur3;

/// Points per endpoint.
const POINTS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarbonEncoding {
    /// carbon-c-relay's `carbon_ch`.
    RelayMd5,
    /// carbon-c-relay's `fnv1a_ch`.
    RelayFnv1a,
    /// The ring of carbon's own daemons.
    Python {
        hash: CarbonHash,
        /// `fast-hashing`.
        fast: bool,
        /// Owners of one key must be on different hosts.
        diverse: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct CarbonRing {
    form: CarbonEncoding,
    /// Ascending. MurmurHash3 values are signed; the others are below 65,536.
    positions: Vec<i64>,
    /// The endpoint of each point.
    owners: Vec<u16>,
    /// For each endpoint the first endpoint on its host.
    hosts: Vec<u16>,
}

impl CarbonRing {
    pub(super) fn new(form: CarbonEncoding, labels: &[Label<'_>]) -> CarbonRing {
        let mut points: Vec<(i64, u16)> = Vec::with_capacity(labels.len() * POINTS);
        for (endpoint, label) in labels.iter().enumerate() {
            for number in 0..form.points() {
                let key = entry_key(form, label, number);
                points.push((position(form, &key), endpoint as u16));
            }
        }
        match form {
            CarbonEncoding::RelayMd5 => {
                points.sort_by_key(|(at, own)| {
                    let label = &labels[usize::from(*own)];
                    (*at, label.host, label.instance.is_none(), label.instance)
                });
                first_takes_all(&mut points);
            }
            CarbonEncoding::RelayFnv1a => {
                points.sort_by_key(|(at, own)| {
                    let label = &labels[usize::from(*own)];
                    (*at, label.host, label.port_number())
                });
                first_takes_all(&mut points);
            }
            CarbonEncoding::Python { fast: false, .. } => points = each_its_own(points),
            CarbonEncoding::Python { fast: true, .. } => points.sort(),
        }
        let host = |label: &Label<'_>| labels.iter().position(|other| other.host == label.host);
        let hosts = labels.iter().map(|label| host(label).expect("its own is among them") as u16).collect();
        let (positions, owners) = points.into_iter().unzip();
        CarbonRing { form, positions, owners, hosts }
    }

    pub(super) fn position(&self, key: &[u8]) -> i64 {
        position(self.form, key)
    }

    /// The first owner of the key.
    pub(super) fn owner(&self, key: &[u8]) -> Option<usize> {
        let owner = self.owners.get(self.first(key)).or_else(|| self.owners.first())?;
        Some(usize::from(*owner))
    }

    /// Index of the point at which a key's owners begin; the number of points means the first one.
    fn first(&self, key: &[u8]) -> usize {
        let position = self.position(key);
        match self.form {
            CarbonEncoding::Python { fast: true, .. } if self.owners.is_empty() => 0,
            CarbonEncoding::Python { fast: true, .. } => {
                position.rem_euclid(self.owners.len() as i64) as usize
            }
            _ => self.positions.partition_point(|point| *point < position),
        }
    }

    /// Appends the `count` owners of the key to `to`: the endpoint of the first point at or above the key's
    /// position, then those of the following points, around the end. Fewer when there are too few endpoints.
    pub(super) fn owners(&self, key: &[u8], count: usize, to: &mut Vec<u16>) {
        let begin = to.len();
        let first = self.first(key);
        let one_for_each_host = matches!(self.form, CarbonEncoding::Python { diverse: true, .. });
        let same = |own: u16, other: u16| {
            own == other
                || one_for_each_host && self.hosts[usize::from(own)] == self.hosts[usize::from(other)]
        };
        for at in (first..self.owners.len()).chain(0..first) {
            if to.len() - begin == count {
                break;
            }
            let own = self.owners[at];
            if !to[begin..].iter().any(|other| same(own, *other)) {
                to.push(own);
            }
        }
    }

    pub(super) fn points(&self) -> impl Iterator<Item = (i64, usize)> {
        self.positions.iter().copied().zip(self.owners.iter().map(|owner| usize::from(*owner)))
    }
}

impl CarbonEncoding {
    /// Points per endpoint.
    fn points(self) -> usize {
        match self {
            CarbonEncoding::Python { fast: true, .. } => 1,
            _ => POINTS,
        }
    }
}

/// Points at the same position all belong to the first one's endpoint.
fn first_takes_all(points: &mut [(i64, u16)]) {
    for at in 1..points.len() {
        if points[at].0 == points[at - 1].0 {
            points[at].1 = points[at - 1].1;
        }
    }
}

/// A point whose position is taken moves up to the next free one.
fn each_its_own(points: Vec<(i64, u16)>) -> Vec<(i64, u16)> {
    let mut placed = std::collections::BTreeMap::new();
    for (mut at, own) in points {
        while placed.contains_key(&at) {
            at += 1;
        }
        placed.insert(at, own);
    }
    placed.into_iter().collect()
}

fn position(form: CarbonEncoding, key: &[u8]) -> i64 {
    let md5 = || {
        let digest = Md5::digest(key);
        i64::from(u16::from_be_bytes(*digest.first_chunk().expect("a digest has sixteen bytes")))
    };
    match form {
        CarbonEncoding::RelayMd5 => md5(),
        CarbonEncoding::RelayFnv1a => i64::from(fnv1a_16(key, Bytes::Signed)),
        CarbonEncoding::Python { hash: CarbonHash::CarbonCh, .. } => md5(),
        CarbonEncoding::Python { hash: CarbonHash::Fnv1aCh, .. } => i64::from(fnv1a_16(key, Bytes::Unsigned)),
        CarbonEncoding::Python { hash: CarbonHash::Mmh3Ch, .. } => i64::from(murmur3(key, 0) as i32),
    }
}

/// The text that is hashed for one point of an endpoint.
fn entry_key(form: CarbonEncoding, label: &Label<'_>, number: usize) -> Vec<u8> {
    let tuple = || {
        let instance = label.instance.map_or(b"None".to_vec(), in_quotes);
        let parts: [&[u8]; 5] = [b"(", &in_quotes(label.host), b", ", &instance, b")"];
        parts.concat()
    };
    let fnv1a = |instance: &[u8]| [number.to_string().as_bytes(), b"-", instance].concat();
    match form {
        CarbonEncoding::RelayFnv1a => match label.instance {
            Some(instance) => fnv1a(instance),
            None => fnv1a(&[label.host, b":", label.port].concat()),
        },
        CarbonEncoding::Python { fast: true, .. } => tuple(),
        CarbonEncoding::Python { hash: CarbonHash::Fnv1aCh, .. } => fnv1a(label.instance.unwrap_or(b"None")),
        CarbonEncoding::RelayMd5 | CarbonEncoding::Python { .. } => {
            [&tuple()[..], b":", number.to_string().as_bytes()].concat()
        }
    }
}

/// As Python prints a string of plain characters.
fn in_quotes(text: &[u8]) -> Vec<u8> {
    [b"'", text, b"'"].concat()
}
