//! The solver that tests use. A test that needs one fails where there is none, and says what
//! to do.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by several tests, each of which uses a part; a test that cannot go on fails"
)]

use std::path::{Path, PathBuf};

use polctl::analyze::smt::solver::{Located, Places};

/// polctl's cache directory in tests, which `scripts/solver` fills.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("solver/polctl")
}

/// Only the libraries in a cache directory.
pub fn in_cache(cache: &Path) -> Places {
    let polctl = Some(env!("CARGO_BIN_EXE_polctl").into());
    Places { cache: Some(cache.into()), polctl, ..Places::default() }
}

/// Where the solver of this machine is looked for: as `polctl` does, else the libraries.
pub fn places() -> Places {
    Places {
        own_variable: std::env::var_os("POLCTL_SOLVER"),
        cvc5_variable: std::env::var_os("CVC5"),
        path: std::env::var_os("PATH"),
        ..in_cache(&cache())
    }
}

/// The solver of this machine.
pub fn solver() -> Located {
    Located::find(&places())
        .unwrap_or_else(|error| panic!("{error}: install cvc5 (Debian: cvc5) or run `scripts/solver`"))
}

/// The libraries, also where there is an executable.
pub fn libraries() -> Located {
    Located::find(&in_cache(&cache())).unwrap_or_else(|error| panic!("{error}: run `scripts/solver`"))
}
