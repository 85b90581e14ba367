//! Hash rings of node's proxy and libketama: an endpoint owns the keys between its points and the preceding ones.

use md5::{Digest as _, Md5};

use super::method::RingReplicas;

/// Maximum digests per endpoint. Both libraries aim at 40 and get 39 when their arithmetic falls just short.
const DIGESTS_MAX: usize = 40;

#[derive(Clone, Copy, Debug)]
pub(super) enum RingKind {
    StatsdNode(RingReplicas),
    Ketama,
}

/// The ring of the live endpoints, and the data to rebuild it when an endpoint goes down or comes back.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    form: RingKind,
    /// For each endpoint the words of its digests.
    words: Vec<[[u32; 4]; DIGESTS_MAX]>,
    /// All points of live endpoints, ascending.
    points: Vec<u32>,
    /// The endpoint of each point.
    owners: Vec<u16>,
}

impl Ring {
    pub(super) fn new<L: AsRef<[u8]>>(form: RingKind, labels: &[L]) -> Ring {
        let words = labels.iter().map(|label| words_of(label.as_ref())).collect();
        Ring { form, words, points: Vec::new(), owners: Vec::new() }
    }

    /// Rebuilds the ring from the endpoints `listed`, in the library's order.
    pub(super) fn rebuild(&mut self, listed: &[u16]) {
        let digests = match self.form {
            RingKind::StatsdNode(_) => statsd_node_digests(listed.len()),
            RingKind::Ketama => ketama_digests(listed.len()),
        };
        let replicas = match self.form {
            RingKind::StatsdNode(RingReplicas::One) => 1,
            RingKind::StatsdNode(RingReplicas::Four) | RingKind::Ketama => 4,
        };
        let mut points: Vec<(u32, u16)> = Vec::with_capacity(listed.len() * digests * replicas);
        for &endpoint in listed {
            let words = self.words[usize::from(endpoint)][..digests].iter();
            points.extend(words.flat_map(|four| &four[..replicas]).map(|point| (*point, endpoint)));
        }
        // Stable: of equal points that of the endpoint listed first comes first, and is the one that is found.
        points.sort_by_key(|(point, _)| *point);
        (self.points, self.owners) = points.into_iter().unzip();
        debug_assert!(self.points.is_sorted());
    }

    /// The owner of the first point at or above the key's position, otherwise of the smallest point.
    pub(super) fn owner(&self, key: &[u8]) -> Option<usize> {
        self.at(self.position(key))
    }

    pub(super) fn at(&self, position: u32) -> Option<usize> {
        let at = self.points.partition_point(|point| *point < position);
        let owner = self.owners.get(at).or_else(|| self.owners.first())?;
        Some(usize::from(*owner))
    }

    pub(super) fn position(&self, key: &[u8]) -> u32 {
        match self.form {
            RingKind::StatsdNode(_) => text_position(key),
            RingKind::Ketama => first_word(Md5::digest(key).as_slice()),
        }
    }
}

#[cfg(test)]
impl Ring {
    pub(super) fn points(&self) -> impl Iterator<Item = (u32, usize)> {
        self.points.iter().copied().zip(self.owners.iter().map(|owner| usize::from(*owner)))
    }
}

/// Digests of `label-0`, `label-1`, …, each as four little-endian words.
fn words_of(label: &[u8]) -> [[u32; 4]; DIGESTS_MAX] {
    std::array::from_fn(|number| {
        let digest = Md5::new().chain_update(label).chain_update(format!("-{number}")).finalize();
        std::array::from_fn(|word| first_word(&digest[4 * word..]))
    })
}

/// The first four bytes, little-endian.
fn first_word(digest: &[u8]) -> u32 {
    u32::from_le_bytes(*digest.first_chunk().expect("a digest has sixteen bytes"))
}

/// The key's position in node, which hashes a string: invalid UTF-8 is replaced by U+FFFD.
fn text_position(key: &[u8]) -> u32 {
    if key.is_ascii() {
        return first_word(Md5::digest(key).as_slice());
    }
    let mut hash = Md5::new();
    for chunk in key.utf8_chunks() {
        hash.update(chunk.valid());
        if !chunk.invalid().is_empty() {
            hash.update("\u{fffd}");
        }
    }
    first_word(hash.finalize().as_slice())
}

/// Digests of each of `live` endpoints of weight 100 in hashring: the same operations, in doubles (spec statsd
/// §13).
fn statsd_node_digests(live: usize) -> usize {
    let live = live as f64;
    let share = 100.0 / (100.0 * live);
    let digests = (share * 40.0 * live).floor() as usize;
    digests.min(DIGESTS_MAX)
}

/// The same in libketama, where share and result are floats and intermediate values are doubles.
fn ketama_digests(live: usize) -> usize {
    let share = 1.0 / live as f32;
    let digests = (f64::from(share) * 40.0 * f64::from(live as f32)) as f32;
    (digests.floor() as usize).min(DIGESTS_MAX)
}

#[cfg(test)]
pub(super) fn digests(form: RingKind, live: usize) -> usize {
    match form {
        RingKind::StatsdNode(_) => statsd_node_digests(live),
        RingKind::Ketama => ketama_digests(live),
    }
}
