//! Filters, sampling and the cap on series: rules in tables; shares and the cap compared with naive
//! implementations.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn globs(patterns: &str) -> Vec<Glob> {
    patterns.split_whitespace().map(|pattern| Glob::new(pattern.as_bytes()).expect(pattern)).collect()
}

fn stage(plan: StagePlan) -> Stage {
    Stage::new(plan, 7).expect("a plan")
}

fn admit(stage: &mut Stage, name: &str) -> Admit {
    stage.admit(name.as_bytes(), &[], true)
}

#[test]
fn deny_has_priority_and_an_empty_allow_lets_all_pass() {
    let table = [
        ("", "", "a", true),
        ("", "", "", true),
        ("api.*", "", "api.hits", true),
        ("api.*", "", "web.hits", false),
        ("", "*.debug", "api.debug", false),
        ("", "*.debug", "api.hits", true),
        ("api.*", "*.debug", "api.debug", false),
        ("api.* web.*", "*.debug *.tmp", "web.x.tmp", false),
        ("api.* web.*", "*.debug *.tmp", "web.x.tmp2", true),
        ("*", "*", "a", false),
    ];
    for (allow, deny, name, passes) in table {
        let mut stage = stage(StagePlan { allow: globs(allow), deny: globs(deny), ..StagePlan::default() });
        let want = if passes { Admit::Pass } else { Admit::Filtered };
        // The second time the decision is cached.
        for sampled_type in [true, false] {
            assert_eq!(
                stage.admit(name.as_bytes(), &[b"t"], sampled_type),
                want,
                "{name} by {allow:?}, {deny:?}"
            );
        }
    }
}

/// Far more names than the cache has room for.
#[test]
fn cached_decisions_equal_those_of_the_patterns() {
    let plan = StagePlan {
        allow: globs("a.* b.*[02468]"),
        deny: globs("*7 *99*"),
        sample_names: vec![(globs("a.*5*").remove(0), 0.0)],
        ..StagePlan::default()
    };
    let mut stage = stage(plan);
    for round in 0..2 {
        for at in 0..40_000 {
            let name = format!("{}.{at}", ["a", "b", "c"][at % 3]);
            let (even, text) = (at % 2 == 0, at.to_string());
            let denied = text.ends_with('7') || text.contains("99");
            let allowed = name.starts_with('a') || name.starts_with('b') && even;
            let want = match () {
                () if denied || !allowed => Admit::Filtered,
                () if name.starts_with('a') && text.contains('5') => Admit::SampledOut,
                () => Admit::Pass,
            };
            assert_eq!(admit(&mut stage, &name), want, "{name} in round {round}");
        }
    }
    assert!(stage.memory_bytes() <= 1 << 18, "the cache of decisions is limited");
}

#[test]
fn the_kept_share_is_the_configured_one() {
    const LINES: u32 = 200_000;
    for share in [0.0, 0.001, 0.1, 0.5, 0.9, 1.0] {
        for seed in [1, 2, u64::MAX] {
            let mut stage =
                Stage::new(StagePlan { sample: share, ..StagePlan::default() }, seed).expect("a plan");
            let mut kept = 0;
            for _ in 0..LINES {
                match admit(&mut stage, "a") {
                    Admit::PassSampled { share: got } => {
                        assert_eq!(got, share);
                        kept += 1;
                    }
                    Admit::Pass => {
                        assert_eq!(share, 1.0, "only a share of 1 needs no rate");
                        kept += 1;
                    }
                    other => assert_eq!(other, Admit::SampledOut),
                }
            }
            // Six standard deviations: the seeds are fixed, so the test is deterministic.
            let (lines, want) = (f64::from(LINES), f64::from(LINES) * share);
            let allowed = 6.0 * (lines * share * (1.0 - share)).sqrt();
            assert!(
                (f64::from(kept) - want).abs() <= allowed,
                "{kept} of {LINES} at {share} with seed {seed}"
            );
        }
    }
}

#[test]
fn types_without_a_rate_are_not_sampled() {
    let mut stage = stage(StagePlan { sample: 0.0, ..StagePlan::default() });
    assert_eq!(stage.admit(b"g", &[], false), Admit::Pass);
    assert_eq!(stage.admit(b"g", &[], true), Admit::SampledOut);
}

#[test]
fn the_first_matching_pattern_sets_the_share() {
    let [broad, narrow, keep] = ["api.*", "api.hits", "audit.*"].map(|pattern| globs(pattern).remove(0));
    let plan = StagePlan {
        sample: 0.0,
        sample_names: vec![(keep, 1.0), (broad, 0.5), (narrow, 0.0)],
        ..StagePlan::default()
    };
    let mut stage = stage(plan);
    let mut seen: BTreeMap<&str, Vec<Admit>> = BTreeMap::new();
    for name in ["audit.x", "api.hits", "other"].into_iter().cycle().take(300) {
        let admits = seen.entry(name).or_default();
        let admit = stage.admit(name.as_bytes(), &[], true);
        if !admits.contains(&admit) {
            admits.push(admit);
        }
    }
    assert_eq!(seen["audit.x"], [Admit::Pass]);
    assert_eq!(seen["other"], [Admit::SampledOut]);
    assert_eq!(seen["api.hits"].len(), 2, "{:?}", seen["api.hits"]);
    assert!(seen["api.hits"].contains(&Admit::PassSampled { share: 0.5 }));
}

#[test]
fn decisions_depend_on_the_seed_only() {
    let plan = StagePlan { sample: 0.5, series_max: 40, ..StagePlan::default() };
    let run = |seed| {
        let mut stage = Stage::new(plan.clone(), seed).expect("a plan");
        (0..1000_u64).map(|at| admit(&mut stage, &format!("n{}", at * at % 97))).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn new_series_beyond_series_max_are_rejected() {
    let mut stage = stage(StagePlan { series_max: 3, ..StagePlan::default() });
    let lines: [(&str, &[&[u8]]); 5] =
        [("a", &[]), ("a", &[b"", b"k:v"]), ("a", &[b"k:v", b""]), ("b", &[]), ("a", &[b"k:w"])];
    let admits: Vec<_> = lines.map(|(name, tags)| stage.admit(name.as_bytes(), tags, true)).into();
    assert_eq!(admits, [Admit::Pass, Admit::Pass, Admit::Pass, Admit::SeriesMax, Admit::SeriesMax]);
    assert_eq!(stage.series(), 3);
    // Known series pass as before.
    let again: Vec<_> = lines.map(|(name, tags)| stage.admit(name.as_bytes(), tags, false)).into();
    assert_eq!(again, admits);
    assert_eq!(stage.admit(b"a", &[b"", b""], true), Admit::Pass, "empty tags are ignored");
}

#[test]
fn only_lines_that_would_be_sent_count_as_series() {
    let plan = StagePlan { deny: globs("d.*"), sample: 0.0, series_max: 1, ..StagePlan::default() };
    let mut stage = stage(plan);
    for at in 0..10 {
        assert_eq!(admit(&mut stage, &format!("d.{at}")), Admit::Filtered);
        assert_eq!(admit(&mut stage, &format!("s.{at}")), Admit::SampledOut);
    }
    assert_eq!(stage.series(), 0);
    assert_eq!(stage.admit(b"g", &[], false), Admit::Pass);
    assert_eq!(stage.admit(b"h", &[], false), Admit::SeriesMax);
}

#[test]
fn idle_series_are_forgotten() {
    let mut stage = stage(StagePlan { series_max: 2, series_idle_ns: 10, ..StagePlan::default() });
    assert_eq!(stage.forget(100), 0, "the first time");
    assert_eq!([admit(&mut stage, "idle"), admit(&mut stage, "busy")], [Admit::Pass; 2]);
    assert_eq!(stage.forget(109), 0);
    assert_eq!(stage.forget(110), 0, "idle for one period is not long enough");
    assert_eq!([admit(&mut stage, "busy"), admit(&mut stage, "new")], [Admit::Pass, Admit::SeriesMax]);
    assert_eq!(stage.series(), 2);
    assert_eq!(stage.forget(120), 1, "`idle` was idle for two periods, and is forgotten");
    assert_eq!([admit(&mut stage, "busy"), admit(&mut stage, "new")], [Admit::Pass; 2]);
    assert_eq!(admit(&mut stage, "idle"), Admit::SeriesMax);
    assert_eq!(stage.forget(10_000), 0, "both were used since the last change");
    assert_eq!(stage.forget(10_010), 2);
    assert_eq!(stage.series(), 0);
    assert_eq!(stage.forget(5), 0, "a clock that goes back changes nothing");
}

#[test]
fn without_idle_time_no_series_is_forgotten() {
    let mut stage = stage(StagePlan { series_max: 1, ..StagePlan::default() });
    assert_eq!(admit(&mut stage, "a"), Admit::Pass);
    for now_ns in [0, 1, u64::MAX] {
        assert_eq!(stage.forget(now_ns), 0);
    }
    assert_eq!(admit(&mut stage, "b"), Admit::SeriesMax);
}

#[test]
fn memory_is_bounded_in_an_explosion_of_series() {
    const SERIES_MAX: u32 = 1000;
    let plan = StagePlan { series_max: SERIES_MAX, series_idle_ns: 1, ..StagePlan::default() };
    let mut stage = stage(plan);
    for at in 0..200_000_u64 {
        let _ = admit(&mut stage, &at.to_string());
        assert!(stage.series() <= SERIES_MAX);
        if at % 5000 == 0 {
            stage.forget(at);
        }
    }
    assert!(stage.memory_bytes() <= SERIES_MAX as usize * 2 * 32, "{}", stage.memory_bytes());
    for now_ns in 1_000_000..1_000_004 {
        stage.forget(now_ns);
    }
    assert_eq!(stage.series(), 0);
}

#[test]
fn shares_outside_0_to_1_are_rejected() {
    for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let why = Stage::new(StagePlan { sample: bad, ..StagePlan::default() }, 1).err();
        assert!(why.is_some_and(|why| why.to_string().contains("0 to 1")), "{bad}");
        let named = StagePlan { sample_names: vec![(globs("*").remove(0), bad)], ..StagePlan::default() };
        assert!(Stage::new(named, 1).is_err(), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The obvious cap: two sets of names.
    #[test]
    fn the_cap_agrees_with_a_naive_cap(
        calls in prop::collection::vec((0_u32..40, prop::bool::weighted(0.1)), 0..400),
        series_max in 1_u32..30,
    ) {
        let mut stage = stage(StagePlan { series_max, series_idle_ns: 1, ..StagePlan::default() });
        let (mut young, mut old) = (BTreeSet::new(), BTreeSet::new());
        stage.forget(0);
        for (at, (name, turns)) in calls.into_iter().enumerate() {
            if turns {
                prop_assert_eq!(stage.forget(1 + at as u64), old.len() as u64);
                old = std::mem::take(&mut young);
            }
            let known = young.contains(&name) || old.remove(&name);
            let fits = known || young.len() + old.len() < series_max as usize;
            if fits {
                young.insert(name);
            }
            let want = if fits { Admit::Pass } else { Admit::SeriesMax };
            prop_assert_eq!(admit(&mut stage, &name.to_string()), want);
            prop_assert_eq!(stage.series() as usize, young.len() + old.len());
        }
    }
}
