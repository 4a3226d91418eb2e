//! The generated Cedar schema (DESIGN 5): one namespace per surface, one action per rung.

use std::fmt::Write as _;

use crate::model::{MAX_WORDS, PolicySet, RUNGS, Surface};

/// The schema of a set: of its surfaces, and of capabilities where it has manifests.
pub fn schema_of(set: &PolicySet) -> String {
    let mut out = schema_text(set.surfaces.keys().copied());
    if !set.manifests.is_empty() {
        out.push_str(&super::capability::capability_schema());
    }
    out
}

/// The schema for these surfaces, in Cedar's human-readable syntax.
pub fn schema_text(surfaces: impl IntoIterator<Item = Surface>) -> String {
    let mut out = String::new();
    for surface in surfaces {
        namespace(&mut out, surface);
    }
    out
}

fn namespace(out: &mut String, surface: Surface) {
    let _ = writeln!(out, "namespace {} {{", surface.namespace());
    out.push_str("  entity Agent;\n  entity Host;\n  type Request = {\n");
    let (word, count) = match surface {
        Surface::Egress => ("seg", "segc"),
        Surface::Commands | Surface::Sudo => ("arg", "argc"),
    };
    let mut fields: Vec<(String, &str)> = match surface {
        Surface::Egress => [
            ("method", "String"),
            ("scheme", "String"),
            ("host", "String"),
            ("port", "Long"),
            ("address?", "ipaddr"),
            ("peer?", "ipaddr"),
            ("secrets", "Set<String>"),
            ("external", "Bool"),
        ]
        .map(|(n, t)| (n.to_owned(), t))
        .to_vec(),
        Surface::Commands | Surface::Sudo => [
            ("program", "String"),
            ("trusted", "Bool"),
            ("harmless", "Bool"),
            ("line", "String"),
            ("options", "Set<String>"),
            ("certain", "Set<String>"),
            ("globals", "Set<String>"),
            ("unknown", "Set<Long>"),
            ("open", "Bool"),
            ("many", "Bool"),
            ("covered", "Bool"),
            ("writes", "Set<String>"),
            ("names", "Set<String>"),
            ("env", "Set<String>"),
            ("wrappers", "Set<String>"),
            ("dynamic", "Bool"),
            ("external", "Bool"),
        ]
        .map(|(n, t)| (n.to_owned(), t))
        .to_vec(),
    };
    if surface == Surface::Sudo {
        fields.push(("run_as".to_owned(), "String"));
    }
    fields.push((count.to_owned(), "Long"));
    fields.extend((1..=MAX_WORDS).map(|i| (format!("{word}{i}?"), "String")));
    for (name, kind) in fields {
        let _ = writeln!(out, "    {name}: {kind},");
    }
    out.push_str("  };\n");
    let rungs: Vec<String> = (0..RUNGS).map(|r| format!("tier{r}")).collect();
    let _ = writeln!(
        out,
        "  action {} appliesTo {{\n    principal: [Agent],\n    resource: [Host],\n    context: Request,\n  }};\n}}",
        rungs.join(", ")
    );
}
