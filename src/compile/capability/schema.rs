//! The Cedar schema of the namespace `Capabilities`: one action for each class and rung, one
//! context type for each class.

use std::fmt::Write as _;

use crate::model::{Class, MAX_SEGMENTS, RiskTier};

/// The namespace.
pub const CAPABILITIES: &str = "Capabilities";

/// The name of an action: `net.egress/ask`.
pub fn action_name(class: Class, rung: u8) -> String {
    let rung = RiskTier::ALL.get(usize::from(rung)).map_or("", |tier| tier.name());
    format!("{class}/{rung}")
}

/// What contexts of a class hold besides what all hold.
fn fields(class: Class) -> Vec<(String, &'static str)> {
    let fixed: &[(&str, &str)] = match class {
        Class::NetEgress => &[
            ("host", "String"),
            ("port", "Long"),
            ("address?", "ipaddr"),
            ("peer?", "ipaddr"),
            ("tls_inspect", "Bool"),
        ],
        Class::FsScope => &[("write", "Bool"), ("depth", "Long")],
        Class::Clipboard => &[("kind", "String")],
        Class::Gpu => &[("kind", "String"), ("device", "String")],
        Class::InstallPrivileged => &[("kind", "String"), ("name", "String")],
        Class::Persistence => &[("survives_session", "Bool"), ("depth", "Long")],
        Class::Credentials => &[("broker_scope", "String"), ("raw", "Bool")],
        Class::Peripheral => &[("kind", "String"), ("device", "String")],
        Class::Grant => &[("capability", "String"), ("level", "Long")],
    };
    let mut out: Vec<(String, &str)> = fixed.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    if matches!(class, Class::FsScope | Class::Persistence) {
        out.extend((1..=MAX_SEGMENTS).map(|at| (format!("seg{at}?"), "String")));
    }
    out
}

/// The schema.
pub fn capability_schema() -> String {
    let mut out = format!("namespace {CAPABILITIES} {{\n");
    out.push_str("  entity Workspace;\n  entity Session in [Workspace];\n  entity Persona;\n");
    out.push_str("  entity Agent in [Session, Persona];\n  entity Image;\n  entity Integration;\n");
    for class in Class::ALL.iter().copied() {
        let kind = class.name().replace('.', "_");
        let _ = writeln!(out, "  type {kind}_request = {{");
        let common = [
            ("external", "Bool"),
            ("sensitive", "Bool"),
            ("lifecycle", "Long"),
            ("now", "datetime"),
            ("expires?", "datetime"),
        ];
        for (name, kind) in common {
            let _ = writeln!(out, "    {name}: {kind},");
        }
        for (name, kind) in fields(class) {
            let _ = writeln!(out, "    {name}: {kind},");
        }
        out.push_str("  };\n");
        let actions: Vec<String> =
            (0..crate::model::CAPABILITY_RUNGS).map(|rung| format!("\"{}\"", action_name(class, rung))).collect();
        let _ = writeln!(
            out,
            "  action {} appliesTo {{\n    principal: [Agent],\n    resource: [Image, Persona, Integration, Session],\n    context: {kind}_request,\n  }};",
            actions.join(", ")
        );
    }
    out.push_str("}\n");
    out
}
