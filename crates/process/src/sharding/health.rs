//! From the results of checks to up and down. Who checks, and when, is not known here.

/// Most checks that are looked back at.
pub const HEALTH_CHECKS_MAX: u32 = 64;

/// How many results turn the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthPlan {
    checks: u32,
    down_after: u32,
    up_after: u32,
}

impl Default for HealthPlan {
    /// Node's cluster proxy: each result counts at once (spec statsd §13).
    fn default() -> HealthPlan {
        HealthPlan { checks: 1, down_after: 1, up_after: 1 }
    }
}

impl HealthPlan {
    /// Down after `down_after` bad results among the last `checks`, up again after `up_after` good ones among as many.
    /// None unless 1 <= `down_after`, `up_after` <= `checks` <= [`HEALTH_CHECKS_MAX`].
    pub fn new(checks: u32, down_after: u32, up_after: u32) -> Option<HealthPlan> {
        let fits = |count| (1..=checks).contains(&count);
        let valid = checks <= HEALTH_CHECKS_MAX && fits(down_after) && fits(up_after);
        valid.then_some(HealthPlan { checks, down_after, up_after })
    }

    /// How many of the last results count.
    pub fn checks(self) -> u32 {
        self.checks
    }

    /// Bad results among them that turn the state.
    pub fn down_after(self) -> u32 {
        self.down_after
    }

    /// Good results among them that turn it back.
    pub fn up_after(self) -> u32 {
        self.up_after
    }
}

/// How a check changed an endpoint's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// It was down and is up.
    Up,
    /// It was up and is down.
    Down,
}

/// One endpoint's health. Up until checks say otherwise: node, too, sends before it knows.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    plan: HealthPlan,
    up: bool,
    /// The results since the state last turned that speak against it: 1 for such a one, the newest lowest.
    against: u64,
}

impl Health {
    /// An endpoint that is up.
    pub fn new(plan: HealthPlan) -> Health {
        Health { plan, up: true, against: 0 }
    }

    /// Takes the result of one check; says when it turned the state. What was before a turn counts no more.
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

    /// Whether the endpoint is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Goes on under another plan, as a reload brings it: the state stays, the results so far are forgotten.
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

    /// Results (`+` good, `-` bad) to states after each (`U`, `D`).
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
    fn results_turn_the_state_when_there_are_enough_of_them() {
        let table = [
            ("node's", (1, 1, 1), "+-+--++", "UDUDDUU"),
            ("three in a row, both ways", (3, 3, 3), "--+---++-+++-", "UUUUUDDDDDDUU"),
            ("two of three down, three in a row up", (3, 2, 3), "-+--++-+++", "UUDDDDDDDU"),
            ("a failure leaves the window", (3, 2, 1), "-++-++--", "UUUUUUUD"),
            ("slow down, quick up", (5, 3, 1), "-+-+-+", "UUUUDU"),
            ("what was before the turn counts no more", (5, 2, 3), "--+++-+++-", "UDDDUUUUUD"),
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
    fn a_plan_has_its_limits() {
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
    fn a_new_plan_keeps_the_state_and_forgets_the_results() {
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
        fn the_state_is_what_a_list_of_results_says(
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
