//! Plain requests for rules, made without a search.

use std::collections::BTreeSet;

use crate::model::{CommandRequest, EgressRequest, Glob, HostPattern, Item, Matcher, Piece, Request, Rule, When, Word};

/// A request that plainly matches a rule, without a search: most rules have one.
pub(super) fn sample(rule: &Rule) -> Option<Request> {
    (rule.when == When::default()).then(|| words(rule, false)).flatten()
}

/// A request with the words of a rule, whatever its `when` says of the facts. `last`: of each
/// `with` the last item instead of the first.
pub(super) fn words(rule: &Rule, last: bool) -> Option<Request> {
    let fill = |glob: &Glob| -> String {
        glob.pieces()
            .iter()
            .map(|p| match p {
                Piece::Text(text) => text.as_str(),
                Piece::Any => "x",
            })
            .collect()
    };
    match &rule.matcher {
        Matcher::Command { pattern, with, run_as, .. } => {
            let mut words: Vec<Word> = pattern
                .words
                .iter()
                .map(|w| w.first().map(fill))
                .collect::<Option<Vec<_>>>()?
                .into_iter()
                .map(Word::Known)
                .collect();
            for items in with {
                let item = if last { items.last() } else { items.first() };
                words.push(Word::Known(match item? {
                    Item::Argument(glob) => fill(glob),
                    option => option.to_string(),
                }));
            }
            let mut request = CommandRequest::new(rule.surface, &fill(pattern.programs.first()?), words);
            if let Some(user) = run_as.first() {
                request.run_as.clone_from(user);
            }
            Some(Request::Command(request))
        }
        Matcher::Egress { pattern, .. } => {
            let host = match &pattern.host {
                HostPattern::Exact(host) | HostPattern::DomainTree(host) => host.clone(),
                HostPattern::SubDomains(host) => format!("x.{host}"),
                HostPattern::Network(_) => return None,
            };
            Some(Request::Egress(EgressRequest {
                agent: "agent".into(),
                machine: "host".into(),
                method: pattern.methods.first()?.clone(),
                scheme: pattern.scheme,
                host,
                address: None,
                peer: None,
                port: pattern.port,
                segments: pattern.segments.iter().map(fill).collect(),
                secrets: BTreeSet::new(),
                external: false,
            }))
        }
    }
}
