//! The vectors of the specification (spec riemann §18), and some more for what these do not touch.

use super::rig::Rig;

/// A stream, its inputs, and what it passes, in the notation of [`super::rig`].
#[rustfmt::skip]
const VECTORS: &[(&str, &str, &str)] = &[
        ("(smap :metric out)", "m3 :x m0 metric=false", "3 0 false"),
        ("(smapcat identity out)", "[1 2] nil [] [3]", "1 2 3"),
        // Sequences that are computed when they are looked at.
        ("(smapcat (fn [e] (map identity [e e])) out)", "m1", "m1 m1"),
        ("(smap (fn [e] (lazy-seq [e e])) (sflatten out))", "m1", "m1 m1"),
        ("(let [s (sflatten out)] (sdo (fn [e] (s (map identity [e e])))))", "m1", "m1 m1"),
        ("(changed (fn [e] (map e [:state])) out)", ":a :a :b", ":a :b"),
        ("(runs 2 (fn [e] (map e [:state])) out)", "a,:1 b,:1", "b,:1"),
        ("(by (fn [e] (map e [:state])) (counter out))", "m1,:a m2,:b m3,:a", "m1,:a m2,:b m4,:a"),
        ("(tag (map str [1 2]) out)", "{}", "#1,#2"),
        ("(adjust [:tags (fn [tags] (map str tags))] (untag \"a\" out))", "#a,#b", "#b"),
        ("(percentiles 5 (map identity [1]) out)", "p,m1 +5", "@5 p 1,m1"),
        ("(sreduce max-metric out)", "m4 m2 m9 m1", "m4 m9 m9"),
        ("(moving-event-window 2 out)", "a b c", "[a] [a b] [b c]"),
        ("(fixed-event-window 2 out)", "a b c d e", "[a b] [c d]"),
        (
            "(moving-time-window 3 out)",
            "t10 t11 x t13 t10 t14",
            "[t10] [t10 t11] [t10 t11 x] [t11 x t13] [x t13 t14]",
        ),
        ("(moving-time-window 2 out)", "t5 t3 t4 t6", "[t5] [t5 t4] [t5 t6]"),
        ("(fixed-time-window 5 out)", "t7 t9 x t11 t12 t8 t28 t33", "[t7 t9 x t11] [t12] [] [] [t28]"),
        ("(fixed-offset-time-window 5 out)", "t7 t9 t10 t14 t15", "[t7 t9] [t10 t14]"),
        ("(rate 2 out)", "m5t0l10 +1 m4t1l10 +1 +2 m6t4l3 +9", "@2 m9/2t2l10 @4 m0t4l8 @6 m3t6l3"),
        ("(rate 2 out)", "m4t0 m4t0,:expired +2 m2t2 +2", "@4 m5t4"),
        ("(rate 1 out)", "a,t0 +2", "@1 m0t1 @2 m0t2"),
        ("(rate 1 out)", "m1t0l2 +5 m1t5l2 +5", "@1 m1t1l2 @2 m0t2l1 @6 m1t6l2 @7 m0t7l1"),
        ("(ddt out)", "m1t0 m4t2 t3 m4t3 m9t3 m0t5", "m3/2t2 m0t3 m-9/2t5"),
        ("(ddt 2 out)", "m1t0 +1 m5t1 +1 m11t2 +2 +2 +2", "@2 m4t2 @4 m6t4 @6 m0t6 @8 m0t8"),
        (
            "(percentiles 5 [0 0.5 0.9 1] out)",
            "p,m3 p,m9 p,m1 p,m10 p,m4 p,m2 p,m8 p,m5 p,m7 p,m6 +5 +5",
            "@5 p 0,m1 p 0.5,m6 p 0.9,m10 p 1,m10",
        ),
        ("(percentiles 5 {0.5 \".med\"} out)", "p,m1 p,m2 +5", "@5 p.med,m2"),
        ("(counter out)", "m2 x m3 m100,#reset m1 m-5", "m2 x m5 m100,#reset m101 m96"),
        ("(counter 9223372036854775807 out)", "m1", "!"),
        ("(ewma-timeless 1/4 out)", "m8 m8 x m0", "m2 m7/2 x m21/8"),
        ("(ewma 2 out)", "m10t0 m10t2 m0t4 t5 m10t3", "m2.92893t0 m4.3934t2 m2.1967t4 t5 m4.26777t4"),
        ("(throttle 2 5 out)", "a b c +1 d +4 e f g", "a b @5 e f"),
        ("(throttle 1 5 out)", "+12 a +1 b +2 c", "@12 a @15 c"),
        ("(rollup 2 5 out)", "a b c d +5 e f +5 g +5 +5", "[a] [b] @5 [c d] [e] @10 [f] [g]"),
        ("(batch 3 5 out)", "a b c d +5 e +1 +5 +5", "[a b c] @5 [d] @10 [e]"),
        (
            "(part-time-simple 5 nothing add-last (fn [all start end] (note start end all)))",
            "+1 a +2 b +3 c +10 d +5",
            "@5 0-5-[a b] @10 5-10-[c] @20 15-20-[d]",
        ),
        ("(periodically-until-expired 2 (fn [] (note 1)))", "t0l5 +1 +2 +2 +2 +2", "1 @2 1 @4 1"),
        (
            "(coalesce 2 out)",
            "^h1,t0l3 ^h2,t0l100 +2 +2 +2",
            "[t0l3,^h1 t0l100,^h2] @2 [t0l3,^h1 t0l100,^h2] @4 [t0l3,^h1 t0l100,^h2] @6 [t0l100,^h2]",
        ),
        ("(changed :state out)", ":ok :ok :bad {} {}", ":ok :bad {}"),
        ("(changed :state {:init \"ok\"} out)", ":ok :bad :ok", ":bad :ok"),
        ("(changed :state {:pairs? true} out)", ":ok :bad", "[nil :ok] [:ok :bad]"),
        ("(stable 4 :state out)", "t0,:a +1 t1,:a +1 t2,:b +1 t3,:a +5 t8,:a", "@7 t3,:a @8 t8,:a"),
        ("(stable 4 :state out)", "t0,:a t3,:a t4,:a +9", "t0,:a t3,:a t4,:a"),
        ("(stable 4 :state out)", ":a", "!"),
        ("(runs 2 :state out)", "a,:1 b,:1 c,:1 d,:2 e,:2", "b,:1 c,:1 e,:2"),
        ("(runs 0 :state out)", "a a", ""),
        (
            "(let [m (fn [e] (note e))] (fill-in 2 {:metric 0} m))",
            "+3 m1t3 +1 m2t4 +5 :expired +4",
            "@2 m0t2 @3 m1t3 @4 m2t4 @6 m0t6 @8 m0t8 @9 :expired",
        ),
        (
            "(fill-in-last 2 {:metric 0} out)",
            "+3 m1,^h +1 m2,^h +5",
            "@3 m1,^h @4 m2,^h @6 m0t6,^h @8 m0t8,^h",
        ),
        ("(interpolate-constant 2 out)", "m1 +1 m2 +4 t5,:expired +3", "m1t0 @2 m2t2 @4 m2t4 @5 t5,:expired"),
        ("(fold-interval 3 :metric total out)", "m1 +1 m2,y +2 +3 m5 +3", "@3 y,m3 @6 m0 @9 m5"),
        ("(fold-interval-metric 3 total out)", "m1 +1 m2,y +2", "@3 y,m3"),
        ("(scale 1/8 out)", "m4 m16 x m1.0", "m1/2 m2 x m0.125"),
        ("(tag [\"x\" \"y\"] out)", "{} #y,#z", "#x,#y #x,#y,#z"),
        ("(untag \"y\" out)", "{} #y,#z", "{} #z"),
        ("(with {:a nil :state \"s\"} out)", "a=1,b=2 [a=1 a=2]", ":s,b=2 [:s :s]"),
        ("(with :metric nil out)", "m1,a", "a"),
        ("(default :ttl 5 out)", "l3 {}", "l3 l5"),
        ("(default {:ttl 5 :dc \"x\"} out)", "l3,dc=y {}", "l3,dc=y l5,dc=x"),
        ("(adjust [:metric * 2] out)", "m4 {}", "m8 !"),
        ("(adjust :metric out)", "m4", "4"),
        ("(where (state \"ok\" #\"^w\") out)", ":ok :warn :x {}", ":ok :warn"),
        ("(where (metric 1 2) out)", "m1 m2.0 m2 m3", "m1 m2"),
        ("(where (> metric 1) out)", "m2 m0 {}", "m2 !"),
        ("(where (tags [\"a\"]) out)", "#a #b", "#a"),
        (
            "(splitp < metric 10 (to hi) 5 (to mid) (to lo))",
            "m11 m10 m5 m6 {}",
            "hi:m11 mid:m10 lo:m5 mid:m6 !",
        ),
        ("(splitp < metric 10 (to hi))", "m11 m10", "hi:m11 !"),
        (
            "(apdex 2 (state \"ok\") (state \"warning\") out)",
            ":ok :ok :warning :bad :expired +2 +2 :ok +2",
            "@2 m5/8,:bad @6 m1,:ok",
        ),
        (
            "(project [(service \"a\") (service \"b\")] out)",
            "a,m1 b,m2 c a,m3",
            "[a,m1 nil] [a,m1 b,m2] [a,m3 b,m2]",
        ),
        ("(predict-linear 3 10 out)", "m1t0 m3t1 m5t2 m4t3", "m23t1 m25t2 m19/2t3"),
        (
            "(top 1 :metric (to T) (to B))",
            "a,m1 b,m5 c,m0",
            "B:a,t0,:expired T:a,m1 T:a,t0,:expired B:a,m1 B:b,t0,:expired T:b,m5 T:c,t0,:expired B:c,m0",
        ),
        ("(clock-skew out)", "t100,^a t90,^b t101,^a", "m0t100,^a m-10t90,^b m0t101,^a"),
        ("(by :host (counter out))", "m1,^a m2,^b m3,^a m1 m4", "m1,^a m2,^b m4,^a m1 m5"),
        (
            "(dual :x (to T) (to F))",
            "x=1 {} :expired",
            "F:t0,:expired T:x=1 T:t0,:expired F:{} T::expired F::expired",
        ),
];

#[test]
fn streams_pass_what_the_vectors_say() {
    for (stream, inputs, want) in VECTORS {
        let mut rig = Rig::new(stream);
        rig.run(inputs);
        assert_eq!(rig.outputs(), *want, "{stream} gets {inputs}");
    }
}
