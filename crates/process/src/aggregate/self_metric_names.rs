//! The names of self-metrics, and which of them have a series.

use model::{Kind, RawKey};

#[derive(Clone, Debug)]
pub(super) struct SelfMetric {
    pub(super) kind: Kind,
    pub(super) name: Box<[u8]>,
    /// None while the series does not exist.
    pub(super) id: Option<u32>,
}

/// All names ever passed to [`Aggregator::add_self_metric`](super::Aggregator::add_self_metric).
#[derive(Clone, Debug, Default)]
pub(super) struct SelfMetrics {
    pub(super) list: Vec<SelfMetric>,
}

impl SelfMetrics {
    pub(super) fn place(&self, kind: Kind, name: &[u8]) -> Option<usize> {
        self.list.iter().position(|series| series.kind == kind && *series.name == *name)
    }

    /// Self-metrics that exist now.
    pub(super) fn len(&self) -> u32 {
        self.list.iter().filter(|series| series.id.is_some()).count() as u32
    }

    /// A sample created a series. Returns true when its name is a self-metric without a series.
    pub(super) fn link(&mut self, kind: Kind, key: RawKey<'_>, id: u32) -> bool {
        if !key.tags.is_empty() {
            return false;
        }
        let Some(at) = self.place(kind, key.name) else { return false };
        debug_assert!(self.list[at].id.is_none(), "a sample shares the series of an existing self-metric");
        self.list[at].id = Some(id);
        true
    }

    /// The series was removed.
    pub(super) fn unlink(&mut self, kind: Kind, id: u32) {
        if let Some(series) = self.list.iter_mut().find(|series| series.kind == kind && series.id == Some(id))
        {
            series.id = None;
        }
    }
}
