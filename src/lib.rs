//! polctl turns reviewed policy text into Cedar and proves what a change to it permits.
//!
//! The crate is a pipeline of stages with a type between each:
//!
//! ```text
//! source → parse → model → compile → analyze → diag → report
//! ```
//!
//! Data flows one way. [`source`] knows bytes and positions, [`parse`] turns text into
//! values of [`model`] and findings of [`diag`], [`compile`] turns the model into Cedar,
//! [`analyze`] compares two compiled sets, [`decide`] asks Cedar about one request, and
//! [`report`] renders, [`sign`] signs and verifies bytes, [`retention`] folds migrations of SQL,
//! [`census`] looks for credentials on a host, and [`import`] turns the rules of other tools into ours. [`cli`] is the
//! only place that prints. `docs/ARCHITECTURE.md` has
//! the longer story.

pub mod analyze;
pub mod census;
pub mod cli;
pub mod compile;
pub mod decide;
pub mod diag;
pub mod import;
pub mod model;
pub mod parse;
pub mod report;
pub mod retention;
pub mod sign;
pub mod source;
