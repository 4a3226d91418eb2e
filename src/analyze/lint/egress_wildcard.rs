//! An egress host that covers a whole top-level domain.

use super::View;
use crate::diag::{Code, Finding};
use crate::model::{HostPattern, Matcher, Tier};

pub(super) fn lint(view: &View<'_>, out: &mut Vec<Finding>) {
    for (_, rule) in view.rules().filter(|(_, rule)| rule.tier < Tier::DENY) {
        let Matcher::Egress { pattern, .. } = &rule.matcher else { continue };
        let (HostPattern::SubDomains(host) | HostPattern::DomainTree(host)) = &pattern.host else { continue };
        if !host.contains('.') {
            let message = format!("`{}` covers a whole top-level domain", pattern.host);
            out.push(Finding::new(Code::EGRESS_WILDCARD, rule.span, message).help("name the domain: `*.example.com`"));
        }
    }
}
