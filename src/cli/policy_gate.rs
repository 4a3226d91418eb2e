//! The policy side of signing: the check over exactly the bytes that are to be signed.

use std::collections::BTreeSet;
use std::path::Path;

use super::approvals::approvals;
use super::args::EngineArgs;
use super::check::{Judged, judged};
use super::gate::{Against, Change, Checked, CompiledFiles, Gate, Verdict};
use super::session::{Failure, exit_code, open_base};
use super::{compile, exit, output};
use crate::compile::{BUNDLE_NAME, Compiled, bundle};
use crate::diag::{Code, Finding, Level, sort};
use crate::report::Report;
use crate::sign::{Base, Digest, FileSet};
use crate::source::{MAX_FILE_BYTES, SourceError, SourceMap, Tree};

/// The gate of `sign`, `verify` and `approve`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyGate;

/// A policy directory whose files were read already.
struct ReadFiles<'a>(&'a FileSet);

impl Tree for ReadFiles<'_> {
    fn label(&self) -> String {
        "the policy directory".into()
    }

    fn origin(&self) -> Option<String> {
        None
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SourceError> {
        let missing = || SourceError::NotFound { path: path.into(), tree: self.label() };
        let bytes = self.0.get(path).ok_or_else(missing)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(SourceError::TooLarge { path: path.into(), tree: self.label() });
        }
        Ok(bytes.to_vec())
    }

    fn list(&self, dir: &str) -> Result<Vec<String>, SourceError> {
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let below = self.0.iter().filter_map(|(name, _)| name.strip_prefix(prefix.as_str()));
        let names: BTreeSet<String> = below.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        Ok(names.into_iter().collect())
    }
}

/// The fingerprint of a widening: what it is about, not where it stands.
pub(super) fn fingerprint(finding: &Finding) -> Digest {
    let mut text = format!("{}\n{}\n", finding.code.as_str(), finding.message);
    if let Some(evidence) = &finding.evidence {
        text.push_str(&format!("{}\n{:?}\n{}\n", evidence.surface, evidence.rungs, evidence.witness));
    }
    Digest::of(text.as_bytes())
}

/// Whether an approval can let it pass.
pub(super) fn is_widening(finding: &Finding) -> bool {
    matches!(finding.code, Code::WIDENING | Code::CONFIG_WIDENING | Code::CAPABILITY_WIDENING)
}

pub(super) fn digest(policy_id: &str) -> Result<Digest, Failure> {
    Digest::parse(policy_id)
        .ok_or_else(|| Failure::usage("the `policy_id` is no digest", "this is a defect of polctl; please report it"))
}

/// Shows what was found, if anything was: the command has its own answer.
fn show(judged: Judged) -> u8 {
    let Judged { map, mut findings, compared, .. } = judged;
    if findings.is_empty() {
        return exit::OK;
    }
    sort(&mut findings);
    let exit_code = exit_code(&findings, false);
    let report = Report { command: "check", compared, policy_ids: (None, None), rules: None, exit_code, findings };
    output::report_on_stderr(&report, &map)
}

/// What a signature says of a base that nothing unapproved widens.
fn green(policy_id: Digest, approved: &[Digest]) -> Base {
    if approved.is_empty() {
        Base::NoWidening { policy_id }
    } else {
        Base::Approved { policy_id, approvals: approved.to_vec() }
    }
}

impl Gate for PolicyGate {
    fn check(&self, dir: &Path, files: &FileSet, against: Against<'_>) -> Result<Checked, Failure> {
        let tree = ReadFiles(files);
        let base = match against {
            Against::Base { base, .. } => Some(open_base(base, dir)?),
            Against::Initial => None,
        };
        let approvals = match against {
            Against::Base { base, approvals: given } => approvals(given, base, dir)?,
            Against::Initial => Vec::new(),
        };
        let judged = judged(&tree, base.as_deref(), &approvals, &EngineArgs::default())?;
        let code = exit_code(&judged.findings, false);
        let Some(new) = &judged.new else {
            let code = show(judged);
            return Ok(Checked {
                set: String::new(),
                policy_id: Digest::of(b""),
                used: Vec::new(),
                verdict: Verdict::Red(code.max(exit::USAGE)),
            });
        };
        let policy_id = digest(&new.policy_id())?;
        let sources = compile::sources(&tree, &judged.map)?;
        let mut used: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
        let mut verdict = match (&judged.old, code) {
            (Some(old), exit::OK) => Verdict::Green(green(digest(&old.policy_id())?, &judged.approved)),
            (None, exit::OK) => Verdict::Green(Base::Initial),
            (_, red) => Verdict::Red(red),
        };
        let mut stale = false;
        if let Some(bytes) = files.get(BUNDLE_NAME) {
            used.push(BUNDLE_NAME.to_owned());
            stale = bytes != bundle(new, &judged.map, &sources);
        }
        let set = new.set.config.set.clone();
        show(judged);
        if stale {
            output::notice(&format!(
                "polctl sign: `{BUNDLE_NAME}` is not what these files compile to; run `polctl compile --bundle` first"
            ));
            verdict = match verdict {
                Verdict::Green(_) => Verdict::Red(exit::FINDINGS),
                red @ Verdict::Red(_) => red,
            };
        }
        Ok(Checked { set, policy_id, used, verdict })
    }

    fn change(&self, dir: &Path, files: &FileSet, base: &str) -> Result<Change, Failure> {
        let tree = ReadFiles(files);
        let base_tree = open_base(base, dir)?;
        let judged = judged(&tree, Some(base_tree.as_ref()), &[], &EngineArgs::default())?;
        let (Some(old), Some(new)) = (&judged.old, &judged.new) else {
            show(judged);
            return Err(Failure::usage(
                "one of the versions is malformed",
                "correct it first: what cannot be read cannot be approved",
            ));
        };
        let change = Change {
            set: new.set.config.set.clone(),
            old_policy_id: digest(&old.policy_id())?,
            new_policy_id: digest(&new.policy_id())?,
            findings: judged.findings.iter().filter(|f| is_widening(f)).map(fingerprint).collect(),
        };
        let others = judged.findings.iter().any(|f| f.level == Level::Error && !is_widening(f));
        show(judged);
        if others {
            return Err(Failure::usage(
                "the change has errors besides widenings",
                "correct them first: only widenings can be approved",
            ));
        }
        Ok(change)
    }

    fn compiled(&self, files: &FileSet) -> Result<CompiledFiles, Failure> {
        let tree = ReadFiles(files);
        let mut map = SourceMap::new();
        let mut findings = Vec::new();
        let compiled: Option<Compiled> = super::session::read(&tree, &mut map, &mut findings)?;
        let Some(compiled) = compiled else {
            return Err(Failure::usage(
                "the policy is malformed, so nothing can be compiled",
                "`polctl check` says what is wrong",
            ));
        };
        let files = compile::files(&compiled, &map)?;
        let files = files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        Ok(CompiledFiles { policy_id: digest(&compiled.policy_id())?, files })
    }
}
