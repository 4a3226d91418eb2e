//! The `polctl` executable: parse, dispatch, exit code.

use std::process::ExitCode;

/// `polctl hook` runs before every command of an agent and works in a thread of its own; there the
/// system's allocator asks the kernel for each page, which took a third of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    polctl::cli::run()
}
