//! Estimates the number of distinct members of a set in 16 KiB (HyperLogLog with p = 14, error about 0.8 %).
//!
//! The estimator is the one of Otmar Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017).
//! It needs no correction tables, and it has no discontinuity between small and large counts.

/// Bits of the hash that choose a register.
const P: u32 = 14;
pub(super) const REGISTERS: usize = 1 << P;
/// Highest value of a register: leading zeros of the remaining 50 bits, plus one.
const Q: usize = 64 - P as usize;

/// A HyperLogLog sketch.
#[derive(Clone, Debug)]
pub(super) struct HyperLogLog {
    registers: Box<[u8]>,
}

impl HyperLogLog {
    pub(super) fn new() -> HyperLogLog {
        HyperLogLog { registers: vec![0; REGISTERS].into_boxed_slice() }
    }

    /// Counts a member by its hash. All 64 bits of the hash must be well mixed.
    pub(super) fn add(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> (64 - P)) as usize];
        // The bit set at the end limits the count to Q + 1 zeros.
        let rank = ((hash << P) | (1 << (P - 1))).leading_zeros() as u8 + 1;
        *register = (*register).max(rank);
    }

    /// Distinct members so far.
    pub(super) fn estimate(&self) -> u64 {
        let mut counts = [0u32; Q + 2];
        for register in &self.registers {
            counts[usize::from(*register)] += 1;
        }
        let m = REGISTERS as f64;
        let mut z = m * tau(1.0 - f64::from(counts[Q + 1]) / m);
        for count in counts[1..=Q].iter().rev() {
            z = 0.5 * (z + f64::from(*count));
        }
        z += m * sigma(f64::from(counts[0]) / m);
        (m * m / (2.0 * std::f64::consts::LN_2 * z)).round() as u64
    }

    /// The registers.
    pub(super) fn registers(&self) -> &[u8] {
        &self.registers
    }

    /// Restores a sketch from its registers. None when their number is wrong, or a value is above the maximum.
    pub(super) fn of_registers(registers: &[u8]) -> Option<HyperLogLog> {
        let good =
            registers.len() == REGISTERS && registers.iter().all(|register| usize::from(*register) <= Q + 1);
        good.then(|| HyperLogLog { registers: registers.into() })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.registers.len()
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[test]
fn estimates_stay_within_three_deviations() {
    use std::hash::BuildHasher;
    let hasher = foldhash::quality::FixedState::with_seed(42);
    let mut sketch = HyperLogLog::new();
    assert_eq!(sketch.estimate(), 0);
    let mut next_check = 10u64;
    for member in 1..=300_000u64 {
        let hash = hasher.hash_one(member);
        sketch.add(hash);
        sketch.add(hash);
        if member == next_check {
            let error = sketch.estimate() as f64 / member as f64 - 1.0;
            assert!(error.abs() < 0.0245, "{error} at {member}");
            next_check = next_check * 3 / 2;
        }
    }
    let mut full = HyperLogLog::new();
    (0..REGISTERS as u64).for_each(|register| full.add(register << (64 - P)));
    assert!(full.estimate() > 1 << 50, "the estimate of full registers is finite");
}
