//! Manifests of one version by themselves.

use std::collections::BTreeMap;

use super::{AnalyzeError, enforce, exceeding};
use crate::compile::{Compiled, declared};
use crate::diag::{Code, Finding};
use crate::model::{Level, Manifest, RiskTier, SubjectKind};
use crate::source::SourceMap;

/// Findings about the manifests of a set.
///
/// # Errors
///
/// [`AnalyzeError`]: defects, never verdicts.
pub fn lint(compiled: &Compiled, map: &SourceMap) -> Result<Vec<Finding>, AnalyzeError> {
    let mut out = Vec::new();
    let set = &compiled.set;
    if set.manifests.is_empty() {
        return Ok(out);
    }
    let by_path: BTreeMap<&str, &Manifest> = set.manifests.iter().map(|m| (m.path.as_str(), m)).collect();
    let known = declared(set);
    for manifest in &set.manifests {
        if let Some(parent) = manifest.parent.as_ref().and_then(|(path, _)| by_path.get(path.as_str())) {
            out.extend(exceeding((manifest, compiled), (parent, compiled), map)?);
        }
        for (capability, span) in &manifest.declares {
            if !manifest.grants.contains_key(capability) {
                out.push(
                    Finding::new(
                        Code::UNCLASSIFIED,
                        *span,
                        format!(
                            "{} declares `{capability}`, and nobody classified it: it is refused",
                            manifest.subject
                        ),
                    )
                    .help(format!(
                        "classify it under `grants`: `{capability}: {{ level: read }}`, or leave it refused"
                    )),
                );
            }
        }
        for grant in manifest.grants.values() {
            if !known.contains(grant.capability.as_str()) {
                out.push(
                    Finding::new(
                        Code::UNDECLARED,
                        grant.span,
                        format!("no integration declares `{}`: the grant is refused", grant.capability),
                    )
                    .help("correct the name, add the integration's manifest, or list it under the integration's `declares`"),
                );
            }
            let external = manifest.subject.kind == SubjectKind::Integration && manifest.external
                || set.manifests.iter().any(|m| m.external && m.declares.contains_key(&grant.capability));
            let open = !grant.requires_approval && grant.unattended_in.is_empty();
            if external && open && grant.level >= Level::Execute {
                out.push(
                    Finding::new(
                        Code::UNAPPROVED,
                        grant.span,
                        format!(
                            "`{}` reaches outside at level `{}` without anybody's approval",
                            grant.capability, grant.level
                        ),
                    )
                    .help(
                        "add `requires_approval: true`, or name the workspaces that need none: `unattended_in: [NAME]`",
                    ),
                );
            }
        }
        for entry in manifest.entries.iter().filter(|entry| entry.tier != RiskTier::Block) {
            for system in &manifest.targets {
                if let Some(gap) = enforce::gap(*system, &entry.scope) {
                    out.push(
                        Finding::new(
                            Code::ENFORCEMENT,
                            entry.span,
                            format!("{} cannot hold this entry on {system}: {gap}", manifest.subject),
                        )
                        .help("take the system out of `targets`, or do without the entry; `polctl compile --target` shows what each system enforces"),
                    );
                }
            }
        }
    }
    Ok(out)
}
