//! The credential census (DESIGN 8).

pub mod probe;
