//! What an evaluation may use: steps, depth, memory.
//!
//! A config may be wrong, and it must not take the daemon down with it: each load and each event gets a budget, and where it
//! ends the evaluation ends with a named outcome that no `catch` of the config catches.

use super::error::{EvalError, Outcome};

/// Most collections around a value. Drops, comparisons, hashes and printing go as deep as values do.
pub const VALUE_DEPTH_MAX: u32 = 256;
/// Most bytes of a text.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most values of a collection.
pub const ITEMS_MAX: usize = 1_000_000;

const _: () =
    assert!(ITEMS_MAX as u64 == crate::effort::EFFORT_MAX, "the longest collections can be compared");
/// Most bytes of a thread's stack that calls use before [`EvalError::too_deep`]; the rest of the two mebibytes of a Rust
/// thread is for what a single call needs.
const STACK_BYTES_MAX: usize = 768 * 1024;
/// The same for analysis, which needs more of it for each form, and runs no calls but those of macros.
const ANALYSIS_STACK_BYTES_MAX: usize = 1280 * 1024;

/// How much an evaluation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls, turns of loops, and values that native functions look at.
    pub steps: u64,
    /// Calls within each other.
    pub depth: u32,
    /// Bytes of texts, collections and big integers that are made, whether they are kept or not.
    pub memory_bytes: u64,
}

impl Limits {
    /// Those of loading a config.
    pub const LOAD: Limits = Limits { steps: 50_000_000, depth: 2_000, memory_bytes: 2 << 30 };
    /// Those of one event in one function of the config.
    pub const EVENT: Limits = Limits { steps: 1_000_000, depth: 2_000, memory_bytes: 64 << 20 };
}

/// What is left of the limits.
#[derive(Debug)]
pub struct Budget {
    steps: u64,
    memory_bytes: u64,
    depth: u32,
    depth_max: u32,
    stack_base: usize,
}

/// Where the stack is now.
fn stack_address() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(&marker).addr()
}

impl Budget {
    /// A full budget; the depth counts from the caller's stack frame.
    pub fn new(limits: Limits) -> Self {
        Budget {
            steps: limits.steps,
            memory_bytes: limits.memory_bytes,
            depth: 0,
            depth_max: limits.depth,
            stack_base: stack_address(),
        }
    }

    /// Steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.steps
    }

    /// Bytes that are left.
    pub fn memory_left(&self) -> u64 {
        self.memory_bytes
    }

    /// Uses steps.
    ///
    /// # Errors
    /// If fewer are left; then none is.
    pub fn step(&mut self, count: usize) -> Outcome<()> {
        let count = count as u64;
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(EvalError::too_many_steps())
            }
        }
    }

    /// Counts bytes that are about to be used.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn memory(&mut self, bytes: usize) -> Outcome<()> {
        let left = self.memory_bytes.checked_sub(bytes as u64).ok_or_else(EvalError::too_much_memory)?;
        self.memory_bytes = left;
        Ok(())
    }

    /// Checks the length of a text that is about to be made, and counts its bytes.
    ///
    /// # Errors
    /// If the text is longer than [`TEXT_BYTES_MAX`], or fewer bytes are left.
    pub fn text(&mut self, bytes: usize) -> Outcome<()> {
        if bytes > TEXT_BYTES_MAX {
            return Err(EvalError::too_much_memory());
        }
        self.memory(bytes)
    }

    /// Goes into a call.
    ///
    /// # Errors
    /// If it is one too deep, by count or by bytes of the stack.
    pub fn enter(&mut self) -> Outcome<()> {
        if self.depth >= self.depth_max {
            return Err(EvalError::too_deep());
        }
        self.check_stack(STACK_BYTES_MAX)?;
        self.depth += 1;
        Ok(())
    }

    /// How many calls are around.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Comes back from a call.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Checks the stack before a form is analysed.
    ///
    /// # Errors
    /// If too much of it is used.
    pub fn check_analysis(&self) -> Outcome<()> {
        self.check_stack(ANALYSIS_STACK_BYTES_MAX)
    }

    fn check_stack(&self, most: usize) -> Outcome<()> {
        if self.stack_base.abs_diff(stack_address()) > most {
            return Err(EvalError::too_deep());
        }
        Ok(())
    }
}
