//! The `staunch` binary. Everything is in the library beside it; this file only chooses the allocator.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    staunch::cli::main()
}
