//! What `check` and `diff` found out, before it is a report: the same whether it was computed
//! now or comes out of the cache.

use super::args::{Deny, OutputArgs};
use super::output;
use super::session::exit_code;
use crate::diag::{Finding, RuleCounts};
use crate::report::{Places, Report};
use crate::source::SourceMap;

/// An answer.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Every text that findings point into.
    pub(super) map: SourceMap,
    /// All findings, sorted.
    pub(super) findings: Vec<Finding>,
    /// What became of the rules; `None` where no two sets were compared.
    pub(super) rules: Option<RuleCounts>,
    /// `policy_id` of the old and the new version, where the format shows them.
    pub(super) policy_ids: (Option<String>, Option<String>),
}

impl Outcome {
    /// Prints it, and returns the exit code.
    pub(super) fn report(
        self,
        command: &'static str,
        compared: Option<(String, String)>,
        places: &Places,
        args: &OutputArgs,
    ) -> u8 {
        let Outcome { map, findings, rules, policy_ids } = self;
        let exit_code = exit_code(&findings, args.deny == Some(Deny::Warnings));
        output::report_at(&Report { command, compared, policy_ids, rules, findings, exit_code }, &map, places, args)
    }
}
