//! The second engine: Cedar's symbolic compiler with an SMT solver (DESIGN 6).
//!
//! Owns the way from compiled policies to a solver's verdict and back. It must never take an
//! answer that it did not understand for a verdict.

pub mod solver;
