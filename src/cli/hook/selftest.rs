//! `polctl hook --self-test`: does the hook work, with this policy, in this place?
//!
//! For the start of a session: loads the policy as the hook does and decides lines whose answer
//! does not depend on the policy, each of which some hook of this kind once got wrong.

use std::sync::Arc;
use std::time::Instant;

use super::{LIMIT, load};
use crate::cli::args::HookArgs;
use crate::cli::{exit, output};
use crate::decide::{Setting, judge};
use crate::model::Surface;

/// Lines of which some part is never below tier 2, whatever the policy: what cannot be read,
/// what is only known at run time, and programs that no policy names.
const NEVER_LOW: [&str; 14] = [
    "polctl-self-test-unknown",
    "true; polctl-self-test-unknown",
    "true && polctl-self-test-unknown",
    "true || polctl-self-test-unknown",
    "true | polctl-self-test-unknown",
    "true & polctl-self-test-unknown",
    "true\npolctl-self-test-unknown",
    "echo $(polctl-self-test-unknown)",
    "cat <(polctl-self-test-unknown)",
    "bash -c 'polctl-self-test-unknown'",
    "env FOO=x polctl-self-test-unknown",
    "cat <<E\n$(polctl-self-test-unknown)\nE",
    "$PROGRAM",
    "echo 'no end",
];

pub(super) fn run(args: &HookArgs) -> u8 {
    let begun = Instant::now();
    let mut bundle = match load::bundle(args) {
        Ok(bundle) => bundle,
        Err(why) => return tell(&format!("polctl hook: self-test failed: {why}\n"), exit::FINDINGS),
    };
    let zones = Arc::clone(bundle.zones());
    let trusted_dirs = bundle.head().trusted_dirs.clone();
    let setting = Setting {
        trusted_dirs: &trusted_dirs,
        zones: &zones,
        cwd: None,
        agent: &args.agent,
        host: &args.host,
        external: false,
    };
    let mut wrong = Vec::new();
    for line in NEVER_LOW {
        match judge(&mut bundle, Surface::Commands, line, &setting) {
            Ok(verdict) if verdict.tier.is_some_and(|tier| tier < 2) => {
                wrong.push(format!("{line:?} is of tier {}", verdict.tier.unwrap_or_default()));
            }
            Ok(_) => {}
            Err(error) => wrong.push(format!("{line:?}: {error}")),
        }
    }
    let elapsed = begun.elapsed();
    // A decision reads only what it needs.
    if let Err(error) = bundle.check() {
        wrong.push(error.to_string());
    }
    if elapsed > LIMIT / 2 {
        wrong.push(format!("it took {} ms, and a decision may take {} ms", elapsed.as_millis(), LIMIT.as_millis()));
    }
    if let Some(path) = &args.audit
        && let Err(error) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        wrong.push(format!("the audit file `{}` cannot be written: {error}", path.display()));
    }
    let head = bundle.head();
    if wrong.is_empty() {
        let verified = if args.trust.is_some() { "verified" } else { "NOT VERIFIED" };
        let text = format!(
            "polctl hook: self-test ok: set `{}`, {verified}, {} policies, policy_id {}, {} lines in {} ms\n",
            head.set,
            head.policies,
            head.policy_id,
            NEVER_LOW.len(),
            elapsed.as_millis()
        );
        return tell(&text, exit::OK);
    }
    let mut text = format!("polctl hook: self-test failed for set `{}`:\n", head.set);
    wrong.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    tell(&text, exit::FINDINGS)
}

fn tell(text: &str, code: u8) -> u8 {
    output::print(text).map_or_else(|worse| worse.max(code), |()| code)
}
