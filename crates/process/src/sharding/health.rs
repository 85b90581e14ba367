//! Health of endpoints: turns results of checks into up and down. It does not run the checks.

/// Maximum number of recent checks considered.
pub const HEALTH_CHECKS_MAX: u32 = 64;

/// How many results change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthPlan {
    checks: u32,
    down_after: u32,
    up_after: u32,
}

impl Default for HealthPlan {
    /// Node's cluster proxy: each result changes the state at once (spec statsd §13).
    fn default() -> HealthPlan {
        HealthPlan { checks: 1, down_after: 1, up_after: 1 }
    }
}

impl HealthPlan {
    /// Down after `down_after` bad results among the last `checks`, up again after `up_after` good ones among as
    /// many. None unless 1 <= `down_after`, `up_after` <= `checks` <= [`HEALTH_CHECKS_MAX`].
    pub fn new(checks: u32, down_after: u32, up_after: u32) -> Option<HealthPlan> {
        let fits = |count| (1..=checks).contains(&count);
        let valid = checks <= HEALTH_CHECKS_MAX && fits(down_after) && fits(up_after);
        valid.then_some(HealthPlan { checks, down_after, up_after })
    }

    /// Number of recent results considered.
    pub fn checks(self) -> u32 {
        self.checks
    }

    /// Bad results among them that change the state to down.
    pub fn down_after(self) -> u32 {
        self.down_after
    }

    /// Good results among them that change it back.
    pub fn up_after(self) -> u32 {
        self.up_after
    }
}

/// A change of an endpoint's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// From down to up.
    Up,
    /// From up to down.
    Down,
}

/// Health of one endpoint. It is up until checks fail: node too sends before the first check.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    plan: HealthPlan,
    up: bool,
    /// Results since the last change, as bits: 1 for a result that speaks against the current state, newest lowest.
    against: u64,
}

impl Health {
    /// An endpoint that is up.
    pub fn new(plan: HealthPlan) -> Health {
        Health { plan, up: true, against: 0 }
    }

    /// Records the result of one check; returns the change of state, if any. Results before a change do not count
    /// any more.
    pub fn checked(&mut self, good: bool) -> Option<HealthChange> {
        let window = u64::MAX >> (u64::BITS - self.plan.checks);
        self.against = (self.against << 1 | u64::from(good != self.up)) & window;
        let needed = if self.up { self.plan.down_after } else { self.plan.up_after };
        if self.against.count_ones() < needed {
            return None;
        }
        self.up = !self.up;
        self.against = 0;
        Some(if self.up { HealthChange::Up } else { HealthChange::Down })
    }

    /// True when the endpoint is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Switches to another plan at a reload: the state stays, the recent results are dropped.
    pub fn replan(&mut self, plan: HealthPlan) {
        if plan != self.plan {
            *self = Health { plan, up: self.up, against: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Results (`+` good, `-` bad) to the state after each (`U`, `D`).
    fn states(plan: HealthPlan, results: &str) -> String {
        let mut health = Health::new(plan);
        let mut before = true;
        let state = |result| {
            let change = health.checked(result == '+');
            let expected = match (before, health.is_up()) {
                (true, false) => Some(HealthChange::Down),
                (false, true) => Some(HealthChange::Up),
                _ => None,
            };
            assert_eq!(change, expected);
            before = health.is_up();
            if before { 'U' } else { 'D' }
        };
        results.chars().map(state).collect()
    }

    #[test]
    fn the_state_changes_after_enough_results() {
        let table = [
            ("node's", (1, 1, 1), "+-+--++", "UDUDDUU"),
            ("three in a row, both ways", (3, 3, 3), "--+---++-+++-", "UUUUUDDDDDDUU"),
            ("two of three down, three in a row up", (3, 2, 3), "-+--++-+++", "UUDDDDDDDU"),
            ("a failure leaves the window", (3, 2, 1), "-++-++--", "UUUUUUUD"),
            ("slow down, quick up", (5, 3, 1), "-+-+-+", "UUUUDU"),
            ("results before a change do not count", (5, 2, 3), "--+++-+++-", "UDDDUUUUUD"),
        ];
        for (name, (checks, down, up), results, want) in table {
            let plan = HealthPlan::new(checks, down, up).expect("a valid plan");
            assert_eq!(states(plan, results), want, "{name}");
        }
        let longest = HealthPlan::new(64, 64, 1).expect("a valid plan");
        assert_eq!(states(longest, &"-".repeat(64)), "U".repeat(63) + "D");
        assert_eq!(HealthPlan::default(), HealthPlan::new(1, 1, 1).expect("a valid plan"));
    }

    #[test]
    fn invalid_plans_are_rejected() {
        for (checks, down, up, valid) in [
            (1, 1, 1, true),
            (HEALTH_CHECKS_MAX, HEALTH_CHECKS_MAX, HEALTH_CHECKS_MAX, true),
            (HEALTH_CHECKS_MAX + 1, 1, 1, false),
            (0, 0, 0, false),
            (3, 0, 1, false),
            (3, 1, 0, false),
            (3, 4, 1, false),
            (3, 1, 4, false),
        ] {
            assert_eq!(HealthPlan::new(checks, down, up).is_some(), valid, "{down} and {up} of {checks}");
        }
    }

    #[test]
    fn a_new_plan_keeps_the_state_and_drops_the_results() {
        let plan = |checks, down, up| HealthPlan::new(checks, down, up).expect("a valid plan");
        let mut health = Health::new(plan(2, 2, 2));
        health.checked(false);
        health.replan(plan(2, 2, 2));
        assert_eq!(health.checked(false), Some(HealthChange::Down), "the same plan changes nothing");
        health.checked(true);
        health.replan(plan(3, 3, 2));
        assert!(!health.is_up());
        assert_eq!(health.checked(true), None);
        assert_eq!(health.checked(true), Some(HealthChange::Up));
    }

    proptest! {
        #[test]
        fn the_state_equals_that_of_a_naive_implementation(
            checks in 1u32..=HEALTH_CHECKS_MAX,
            down in 1u32..=HEALTH_CHECKS_MAX,
            up in 1u32..=HEALTH_CHECKS_MAX,
            results in proptest::collection::vec(proptest::bool::ANY, 0..200),
        ) {
            let (down, up) = (down.min(checks), up.min(checks));
            let mut health = Health::new(HealthPlan::new(checks, down, up).expect("a valid plan"));
            let (mut state, mut since_turn) = (true, Vec::new());
            for good in results {
                since_turn.push(good);
                let recent = since_turn.iter().rev().take(checks as usize);
                let against = recent.filter(|good| **good != state).count() as u32;
                if against >= if state { down } else { up } {
                    state = !state;
                    since_turn.clear();
                }
                health.checked(good);
                prop_assert_eq!(health.is_up(), state);
            }
        }
    }
}
