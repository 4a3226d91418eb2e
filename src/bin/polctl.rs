//! The `polctl` executable: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    polctl::cli::run()
}
