//! The order in which Python 3 visits a set of integers.
//!
//! The original collects the coarse intervals that points touch in a set, and propagates to them in its order. In an
//! archive without points the first interval that gets a value has the first slot, and so decides where all later
//! points are. A file is only equal byte for byte if the same interval is first.
//! CPython's sets are a table with open addressing: nine neighbours are tried before the next jump, a new table is
//! made when three fifths are in use, and the hash of an integer is the integer.

/// Neighbours of a place that are tried before the next jump.
const NEIGHBOURS: usize = 9;

/// Size of the smallest table.
const PLACES_LEAST: usize = 8;

/// Sizes above which a table only doubles when it grows, instead of becoming four times as large.
const LARGE: usize = 50_000;

/// The values in the order of a set into which they were put one after the other. Each must occur once.
pub(super) fn of(values: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut table = vec![None; PLACES_LEAST];
    let mut used = 0;
    for value in values {
        let place = free_place(&table, value);
        table[place] = Some(value);
        used += 1;
        if used * 5 >= (table.len() - 1) * 3 {
            table = grown(&table, used);
        }
    }
    table.into_iter().flatten().collect()
}

fn grown(table: &[Option<u64>], used: usize) -> Vec<Option<u64>> {
    let least = if used > LARGE { used * 2 } else { used * 4 };
    let mut places = PLACES_LEAST;
    while places <= least {
        places *= 2;
    }
    let mut larger = vec![None; places];
    for value in table.iter().copied().flatten() {
        let place = free_place(&larger, value);
        larger[place] = Some(value);
    }
    larger
}

fn free_place(table: &[Option<u64>], value: u64) -> usize {
    let mask = table.len() - 1;
    let mut perturbation = value as usize;
    let mut place = perturbation & mask;
    loop {
        // Near the end of the table neighbours are not tried.
        let last = if place + NEIGHBOURS <= mask { place + NEIGHBOURS } else { place };
        if let Some(free) = (place..=last).find(|place| table[*place].is_none()) {
            return free;
        }
        perturbation >>= 5;
        place = place.wrapping_mul(5).wrapping_add(1).wrapping_add(perturbation) & mask;
    }
}

#[test]
fn the_order_is_that_of_cpython() {
    // Output of `list(set([...]))` of Python 3.11.
    let table: &[(&[u64], &[u64])] = &[
        (&[1700000000, 1700000060, 1700000120], &[1700000000, 1700000120, 1700000060]),
        (
            &[1700000000, 1700000300, 1700000600, 1700000900, 1700001200],
            &[1700000000, 1700000900, 1700000300, 1700001200, 1700000600],
        ),
        (
            &[1699999200, 1700002800, 1700017200, 1700020800, 1700024400, 1700028000, 1700071200],
            &[1699999200, 1700020800, 1700028000, 1700071200, 1700017200, 1700024400, 1700002800],
        ),
        (
            &[
                1699920000, 1700006400, 1700092800, 1700179200, 1700265600, 1700352000, 1700438400,
                1700524800, 1700611200, 1700697600, 1700784000, 1700870400, 1700956800, 1701043200,
                1701129600, 1701216000, 1701302400, 1701388800, 1701475200, 1701561600,
            ],
            &[
                1699920000, 1700006400, 1700179200, 1700092800, 1700265600, 1700352000, 1700438400,
                1700524800, 1700611200, 1700697600, 1701302400, 1701388800, 1701475200, 1701561600,
                1700784000, 1700870400, 1700956800, 1701043200, 1701129600, 1701216000,
            ],
        ),
    ];
    for (values, want) in table {
        assert_eq!(of(values.iter().copied()), *want, "{values:?}");
    }
}
