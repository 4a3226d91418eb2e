//! `polctl programs`: the program table, and what changed since an older one.

use std::path::Path;

use super::args::ProgramsArgs;
use super::session::Failure;
use super::{exit, output};
use crate::model::{ProgramTable, changes, program_table};

/// Largest table that is read, in bytes.
const MAX_TABLE: usize = 4 << 20;

pub(super) fn run(args: &ProgramsArgs) -> Result<u8, Failure> {
    match (&args.since, &args.name) {
        (Some(path), _) => since(path),
        (None, None) => Ok(tell(program_table().text(), exit::OK)),
        (None, Some(name)) => match program_table().stanza(name) {
            Some(stanza) => Ok(tell(stanza, exit::OK)),
            None => Err(Failure::Usage {
                message: format!("the program table does not know `{name}`"),
                help: "its options have no meaning to polctl then; `polctl programs` lists those that it knows".into(),
            }),
        },
    }
}

fn since(path: &Path) -> Result<u8, Failure> {
    let usage = |message: String| Failure::Usage {
        message,
        help: "give a table that `polctl programs` of another version printed".into(),
    };
    let bytes = std::fs::read(path).map_err(|error| usage(format!("`{}` cannot be read: {error}", path.display())))?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_TABLE);
    let text = text.ok_or_else(|| usage(format!("`{}` is no UTF-8 text or larger than 4 MiB", path.display())))?;
    let old = ProgramTable::new(&text);
    old.check().map_err(|error| usage(format!("`{}` is no program table: {error}", path.display())))?;
    let found = changes(&old, program_table());
    let mut out = String::new();
    for change in &found {
        let sign = if change.added { '+' } else { '-' };
        let more = if change.permits_more { "  (policies may permit more)" } else { "" };
        out.push_str(&format!("{sign} {}: {}{more}\n", change.program, change.what));
    }
    let wider = found.iter().filter(|change| change.permits_more).count();
    out.push_str(&format!("polctl programs: {} changes, {wider} of them may permit more\n", found.len()));
    Ok(tell(&out, if wider > 0 { exit::FINDINGS } else { exit::OK }))
}

fn tell(text: &str, code: u8) -> u8 {
    output::print(text).map_or_else(|worse| worse.max(code), |()| code)
}
