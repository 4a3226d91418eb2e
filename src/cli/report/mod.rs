//! `polctl report`: one page for reviewers who would rather look than read.
//!
//! Gathers plain data and hands it to `report::html`. The verdict is that of `polctl check`
//! with the same base; a history adds to it only where it leaves something open.

mod history;
mod view;

use super::args::ReportArgs;
use super::check::{Judged, judged};
use super::compile::write_one;
use super::session::{Failure, exit_code, open_base, working_tree};
use super::{exit, output};
use crate::analyze::{coverage, overview};
use crate::diag::sort;
use crate::report::{HistoryView, Page, Report, html};
use crate::source::History;

pub(super) fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let tree = working_tree(&args.dir)?;
    let base = args.base.as_deref().map(|base| open_base(base, &args.dir)).transpose()?;
    let range = args.range.as_deref();
    let commits = range.map(|range| History::open(&args.dir, range)).transpose()?;
    let judged = judged(&tree, base.as_deref(), &[], &args.engine)?;
    let Judged { mut map, mut findings, new, old, compared, .. } = judged;
    let rules = match (&old, &new) {
        (Some(old), Some(new)) => Some(overview(old, new, &mut findings, &map)),
        _ => None,
    };
    sort(&mut findings);
    let covered = new.as_ref().map(|new| coverage(new, &map)).transpose()?.unwrap_or_default();
    let policy_ids =
        (old.as_ref().map(crate::compile::Compiled::policy_id), new.as_ref().map(crate::compile::Compiled::policy_id));
    let history = match (range, &commits) {
        (Some(range), Some(commits)) => Some(history::view(range, commits, &mut map, &args.engine)?),
        _ => None,
    };
    let exit_code = with_history(exit_code(&findings, false), history.as_ref());
    let policy_id = policy_ids.1.clone();
    let report = Report { command: "report", compared, policy_ids, rules, findings, exit_code };
    let page = Page {
        set: new.as_ref().map_or_else(String::new, |new| new.set.config.set.clone()),
        policy_id,
        surfaces: new.as_ref().map(|new| view::surfaces(new, covered)).unwrap_or_default(),
        subjects: new.as_ref().map(view::subjects).unwrap_or_default(),
        settings: new.as_ref().map(view::settings).unwrap_or_default(),
        history,
        report,
    };
    write_one(&args.html, html(&page, &map).as_bytes())?;
    let text = format!("polctl report: {}; written to `{}`\n", crate::report::headline(&page), args.html.display());
    Ok(output::print(&text).map_or_else(|code| code.max(exit_code), |()| exit_code))
}

/// A commit without a verdict leaves open what became possible: that is no pass.
fn with_history(exit_code: u8, history: Option<&HistoryView>) -> u8 {
    let open = history.is_some_and(|history| history.gaps() > 0);
    if exit_code == exit::OK && open { exit::INCONCLUSIVE } else { exit_code }
}
