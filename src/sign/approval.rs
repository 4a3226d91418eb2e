//! Approvals of intended widenings (DESIGN 6, last paragraph).
//!
//! An approval is a signed record about one exact change: the old and the new `policy_id`
//! and the fingerprint of each finding. It counts only under the trust file of the *base*
//! version, which the caller passes: a change cannot approve itself. This module knows
//! nothing of findings but their fingerprints.

use std::collections::BTreeSet;

use serde::Serialize;

use super::digest::Digest;
use super::envelope::{APPROVAL_TYPE, Envelope, SignedBy, to_json};
use super::error::{Document, Malformed, SignError, TrustError, VerifyError};
use super::json::{self, At, Fields};
use super::payload::{check_times, digest, set_name, time, version};
use super::time::Timestamp;
use super::trust::{Role, Trust};
use super::verify::{check_revoked, check_window};

/// Largest approval payload that is read, in bytes.
pub const MAX_APPROVAL_BYTES: usize = 512 * 1024;
/// Most findings in one approval.
pub const MAX_FINDINGS: usize = 4096;
const MAX_REASON_CHARS: usize = 2000;

/// What is approved, by whom, why and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Name of the policy set.
    pub set: String,
    /// `policy_id` of the base.
    pub old_policy_id: Digest,
    /// `policy_id` of the changed version.
    pub new_policy_id: Digest,
    /// Fingerprint of each finding.
    pub findings: BTreeSet<Digest>,
    /// Why the widening is wanted.
    pub reason: String,
    /// The signer (as in the trust file) who approves.
    pub approver: String,
    /// When it was given.
    pub issued: Timestamp,
    /// From when on it no longer counts.
    pub expires: Timestamp,
    /// Version of the polctl that wrote it.
    pub polctl: String,
}

/// The change that needs an approval.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Name of the policy set.
    pub set: &'a str,
    /// `policy_id` of the base.
    pub old_policy_id: Digest,
    /// `policy_id` of the changed version.
    pub new_policy_id: Digest,
}

/// An approval whose signatures, time and change were verified.
#[derive(Clone, Debug)]
pub struct VerifiedApproval {
    approval: Approval,
    digest: Digest,
    signers: Vec<SignedBy>,
}

impl VerifiedApproval {
    /// What was approved.
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// SHA-256 of the payload: what a signed set names ([`super::Base::Approved`]).
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Who signed.
    pub fn signers(&self) -> &[SignedBy] {
        &self.signers
    }

    /// Whether the finding with this fingerprint is approved.
    pub fn covers(&self, fingerprint: Digest) -> bool {
        self.approval.findings.contains(&fingerprint)
    }

    /// Approved fingerprints that the change does not have: an approval for another change
    /// than the one at hand, which the caller reports.
    pub fn unused<'a>(&'a self, findings: &'a BTreeSet<Digest>) -> impl Iterator<Item = Digest> + 'a {
        self.approval.findings.difference(findings).copied()
    }
}

const KEYS: &[&str] =
    &["set", "old_policy_id", "new_policy_id", "findings", "reason", "approver", "issued", "expires", "polctl"];

impl Approval {
    /// The payload's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(self)
    }

    /// Reads a payload whose signatures were verified.
    ///
    /// # Errors
    ///
    /// [`SignError`] with a code `approval-…`, or `payload-times`.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignError> {
        let document = Document::Approval;
        let json = json::parse(document, bytes, MAX_APPROVAL_BYTES)?;
        let fields = At::root(document, &json).fields("", KEYS)?;
        let approval = Approval {
            set: set_name(&fields)?,
            old_policy_id: digest(&fields, "old_policy_id")?,
            new_policy_id: digest(&fields, "new_policy_id")?,
            findings: findings(&fields)?,
            reason: text(&fields, "reason", MAX_REASON_CHARS)?,
            approver: text(&fields, "approver", 64)?,
            issued: time(&fields, "issued")?,
            expires: time(&fields, "expires")?,
            polctl: version(&fields)?,
        };
        check_times(approval.issued, approval.expires)?;
        Ok(approval)
    }
}

fn findings(fields: &Fields<'_>) -> Result<BTreeSet<Digest>, Malformed> {
    let expected = "a list of distinct SHA-256 values in ascending order, at least one";
    let mut findings = BTreeSet::new();
    for (path, item) in fields.list("findings", MAX_FINDINGS)? {
        let finding = Digest::parse(item.text(&path)?).ok_or_else(|| fields.bad("findings", expected))?;
        if findings.last().is_some_and(|last| *last >= finding) {
            return Err(fields.bad("findings", expected));
        }
        findings.insert(finding);
    }
    if findings.is_empty() {
        return Err(fields.bad("findings", expected));
    }
    Ok(findings)
}

fn text(fields: &Fields<'_>, name: &str, most: usize) -> Result<String, Malformed> {
    fields.parsed(name, "a text of allowed length without control characters", |text| {
        let good = |c: char| !c.is_control() || c == '\n';
        (!text.trim().is_empty() && text.chars().count() <= most && text.chars().all(good)).then(|| text.to_owned())
    })
}

/// Verifies an approval under the trust file of the base version.
///
/// # Errors
///
/// [`SignError`]: signatures that are not good for the role `approve`, an approval that is
/// expired, revoked, or about another change (`approval-mismatch`).
pub fn verify_approval(
    bytes: &[u8],
    trust: &Trust,
    change: &Change<'_>,
    now: Timestamp,
) -> Result<VerifiedApproval, SignError> {
    let envelope = Envelope::parse(bytes)?;
    let signers = envelope.verify(APPROVAL_TYPE, Role::Approve, trust, now)?;
    let approval = Approval::parse(envelope.payload())?;
    let digest = Digest::of(envelope.payload());
    if approval.set != trust.set() {
        return Err(TrustError::OtherSet { trusted: trust.set().to_owned(), found: approval.set }.into());
    }
    check_revoked([digest], trust)?;
    check_window(approval.issued, approval.expires, trust, now)?;
    let other = |what| Err(VerifyError::OtherChange { what }.into());
    if approval.set != change.set {
        return other("the policy set");
    }
    if approval.old_policy_id != change.old_policy_id {
        return other("the old policy");
    }
    if approval.new_policy_id != change.new_policy_id {
        return other("the new policy");
    }
    if !signers.iter().any(|by| by.signer == approval.approver) {
        return other("the approver");
    }
    Ok(VerifiedApproval { approval, digest, signers })
}
