//! `polctl rule`: what a finding code means.

use super::args::RuleArgs;
use super::session::Failure;
use super::{exit, output};
use crate::diag::{CODES, Code, info};
use crate::report::rules_page;

pub(super) fn run(args: &RuleArgs) -> Result<u8, Failure> {
    let text = match &args.code {
        None if args.markdown => rules_page(),
        None => CODES
            .iter()
            .map(|row| format!("{:20} {:8} {}\n", row.code.as_str(), row.level.as_str(), row.title))
            .collect(),
        Some(name) => {
            let Some(code) = Code::from_name(name) else {
                return Err(Failure::Usage {
                    message: format!("`{name}` is no finding code"),
                    help: "`polctl rule` without an argument lists all of them".into(),
                });
            };
            let row = info(code);
            format!("{} ({})\n\n{}\n\n{}\n", row.code.as_str(), row.level.as_str(), row.title, row.text)
        }
    };
    Ok(output::print(&text).map_or_else(|code| code, |()| exit::OK))
}
