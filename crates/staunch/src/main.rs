//! The `staunch` binary. Everything is in the library beside it; this file only chooses the allocator.

use std::process::ExitCode;

const _: () = assert!(!deliver::HAS_CANARIES, "known bugs are for the simulator, never for what is shipped");

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    staunch::cli::main()
}
