//! The page of the documentation that explains every finding code, made from the registry.

use crate::diag::{CODES, CodeInfo, Kind};

/// `docs/rules.md`.
pub fn rules_page() -> String {
    let mut out = String::from(
        "# Finding codes\n\n\
         <!-- Made by `polctl rule --markdown`; change src/diag/codes.rs instead. -->\n\n\
         Every finding has one of these codes. `polctl rule CODE` prints what stands here. A level can be raised in `polctl.yaml`\n\
         (`levels: { shadowed: error }`), an error can't be lowered.\n\n\
         | code | level | what it says |\n|---|---|---|\n",
    );
    for row in CODES {
        let name = row.code.as_str();
        out.push_str(&format!("| [`{name}`](#{name}) | {} | {} |\n", row.level.as_str(), row.title));
    }
    CODES.iter().for_each(|row| out.push_str(&section(row)));
    out
}

fn section(row: &CodeInfo) -> String {
    let kind = match row.kind {
        Kind::Malformed => "The input cannot be read as policy: exit code 2, and no verdict.",
        Kind::Policy => "At level error the exit code is 1; warnings fail with `--deny warnings` only.",
        Kind::Inconclusive => "polctl could not decide: exit code 3.",
    };
    format!(
        "\n## {}\n\n{}{}.\n\n{}\n\nLevel {}. {kind}\n",
        row.code.as_str(),
        row.title.chars().next().map_or_else(String::new, |c| c.to_uppercase().to_string()),
        row.title.chars().skip(1).collect::<String>(),
        row.text,
        row.level.as_str()
    )
}
