//! A pipeline of one source and one aggregation, for tests at its border.

use config::diagnostic::Source;
use config::plan::Plan;
use model::{Now, SECOND_NS, SourceId, Span};
use pipeline::{Accounts, Routed, Scratch, Shard};

pub(crate) const START: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000 * SECOND_NS };

/// The plan of a config without mistakes.
pub(crate) fn plan_of(text: &str) -> Plan {
    let (plan, diagnostics) = config::check(Source { name: "t.toml", text }, config::Format::Toml);
    plan.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) accounts: Accounts,
    pub(crate) shard: Shard,
    pub(crate) routed: Routed,
}

impl World {
    pub(crate) fn new(plan: Plan, seed: u64) -> World {
        let accounts = Accounts::default().carried_to(&plan);
        let shard = Shard::new(&plan, &accounts, seed, START);
        World { plan, accounts, shard, routed: Routed::default() }
    }

    pub(crate) fn send(&mut self, packet: &str, now: Now) {
        self.send_to(SourceId(0), packet, now);
    }

    pub(crate) fn send_to(&mut self, source: SourceId, packet: &str, now: Now) {
        let mut intake = self.shard.intakes(&self.plan, source, &self.accounts).make();
        let spans = [Span::new(0, packet.len())];
        self.shard.push(
            intake.datagrams(packet.as_bytes(), &spans, now, &mut Scratch::default()),
            now,
            &mut self.routed,
        );
    }

    pub(crate) fn reload(&mut self, plan: Plan) {
        self.accounts = self.accounts.carried_to(&plan);
        self.shard.reconfigure(&plan, &self.accounts, START, &mut self.routed);
        self.plan = plan;
    }

    /// Everything that has left, as text.
    pub(crate) fn text(&mut self) -> String {
        let blocks = self.routed.blocks.drain(..);
        blocks.map(|(_, block)| String::from_utf8_lossy(&block.bytes).into_owned()).collect()
    }
}
