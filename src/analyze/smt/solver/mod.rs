//! The SMT solver: where it is, how it is started, and how it is spoken with.
//!
//! Owns the solver's process from its start to its end. It knows SMT-LIB as lines and no
//! policy. It must never let a solver that misbehaves give an answer, never wait without a
//! limit, and never leave a process behind.

mod error;
mod group;
mod install;
mod library;
mod lines;
mod pins;
mod places;
mod process;
mod short;
mod tail;
mod version;

pub use error::SolverError;
pub use install::{InstallError, install};
pub use library::{library_dir, library_version, serve_library};
pub use pins::LIBRARY_VERSION;
pub use places::{Found, Located, Looked, Places, Search, search};
pub use process::{Limits, MAX_ANSWER, MAX_MODEL, MAX_SCRIPT, Process};
pub use version::{OLDEST, Version};

/// A runtime that can drive a [`Process`]: one thread, with pipes and a clock.
///
/// # Errors
///
/// [`SolverError::Runtime`] when the system gives no event queue.
pub fn runtime() -> Result<tokio::runtime::Runtime, SolverError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|source| SolverError::Runtime { source })
}
