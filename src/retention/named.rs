//! Retention as a part of a policy set: `retention: retention.yaml` in `polctl.yaml`, compared
//! with the base as everything else that the set names.

use super::{Version, load, weakened};
use crate::diag::{Code, Finding, Level};
use crate::model::Config;
use crate::source::{SourceError, SourceMap, Span, Tree};

/// Findings about what is weaker than at the base. Both versions are read in the same way; one
/// that cannot be read is never a pass.
///
/// # Errors
///
/// A [`SourceError`] when a file that is named cannot be read.
pub fn check(
    (new_tree, new): (&dyn Tree, &Config),
    (old_tree, old): (&dyn Tree, &Config),
    map: &mut SourceMap,
) -> Result<Vec<Finding>, SourceError> {
    let mut findings = Vec::new();
    let Some((old_path, old_span)) = &old.retention else {
        // It is new: nothing was promised before, but it must be readable.
        if let Some((path, span)) = &new.retention {
            version(new_tree, path, *span, map, &mut findings)?;
        }
        return Ok(findings);
    };
    let Some((path, span)) = &new.retention else {
        let message =
            format!("`retention: {old_path}` is no longer in the configuration, so nothing compares retention classes");
        let finding = Finding::new(Code::RETENTION_WEAKENED, Span::new(new.file, 0, 0), message);
        return Ok(vec![finding.related(*old_span, "before").help("bring the line back")]);
    };
    let new = version(new_tree, path, *span, map, &mut findings)?;
    let mut of_base = Vec::new();
    let old = version(old_tree, old_path, *old_span, map, &mut of_base)?;
    match (old, new) {
        (Some(old), Some(new)) => findings.extend(weakened(&old, &new)),
        _ => findings.extend(of_base.into_iter().filter(|f| f.level == Level::Error)),
    }
    Ok(findings)
}

/// A version; a file that is named and not there is reported where it is named.
fn version(
    tree: &dyn Tree,
    path: &str,
    span: Span,
    map: &mut SourceMap,
    findings: &mut Vec<Finding>,
) -> Result<Option<Version>, SourceError> {
    match load(tree, path, map, findings) {
        Err(error @ SourceError::NotFound { .. }) => {
            findings.push(
                Finding::new(Code::INVALID_VALUE, span, error.to_string())
                    .help("paths are relative to `polctl.yaml`; migrations must lie below its directory, too"),
            );
            Ok(None)
        }
        other => other,
    }
}
