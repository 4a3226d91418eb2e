//! Signing with the real check: what is signed, what is refused, what an approval lets pass, and
//! what the hook makes of a verified set.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test that cannot go on fails"
)]

mod sign_common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use polctl::sign::{
    APPROVAL_TYPE, Approval, Digest, Envelope, FileSigner, POLICY_SET_TYPE, PolicySet, PublicKey, Role, Timestamp,
    Trust, sign,
};
use serde_json::{Value, json};
use sign_common::{Bench, Desk, ENVELOPE, MAP, Run, files, finish, git, narrower, polctl, red, wider};

const DAY: i64 = 86_400;

fn now() -> Timestamp {
    Timestamp::from_seconds(jiff::Timestamp::now().as_second()).unwrap()
}

/// Every file below `policy/`, with its bytes.
fn policy(desk: &Desk) -> BTreeMap<String, Vec<u8>> {
    fn collect(dir: &Path, prefix: &str, out: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                collect(&entry.path(), &format!("{name}/"), out);
            } else {
                out.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    collect(&desk.root.path().join("policy"), "", &mut out);
    out
}

/// What the envelope says.
fn payload(desk: &Desk) -> PolicySet {
    PolicySet::parse(Envelope::parse(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap().payload()).unwrap()
}

/// The envelope's payload, changed and signed anew.
fn signed_anew(desk: &Desk, key: &str, trust: &Trust, change: impl FnOnce(&mut PolicySet)) -> Vec<u8> {
    let mut set = payload(desk);
    change(&mut set);
    let signer = FileSigner::open(Path::new(&desk.path(key))).unwrap();
    sign(POLICY_SET_TYPE, set.to_bytes(), Role::Release, &signer, trust, now()).unwrap().0.to_bytes()
}

fn compile_bundle(desk: &Desk) -> String {
    let run = polctl(&["compile", "--bundle", "-C", &desk.path("policy")]).exits(0);
    run.out.lines().find_map(|line| line.strip_prefix("policy_id ")).unwrap().to_owned()
}

#[test]
fn a_base_that_compiles_to_something_else_than_it_was_signed_with_is_told() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let copy = |name: &str| policy(&desk).iter().for_each(|(file, bytes)| desk.put(&format!("{name}/{file}"), bytes));
    copy("base");
    let check = || polctl(&["check", "-C", &desk.path("policy"), "--base", &desk.path("base")]);
    assert!(!check().exits(0).all().contains("compiler-change"));
    // As if an older polctl had compiled the same files to something else.
    let mut set = payload(&desk);
    (set.policy_id, set.polctl) = (Digest::of(b"other"), "0.0.9".into());
    let mut envelope: Value = serde_json::from_slice(&desk.get(&format!("policy/{ENVELOPE}"))).unwrap();
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, set.to_bytes());
    envelope["payload"] = text.into();
    desk.put(&format!("base/{ENVELOPE}"), envelope.to_string());
    let told = check().exits(0);
    assert!(told.all().contains("compiler-change") && told.all().contains("0.0.9"), "{}", told.all());
    polctl(&["check", "-C", &desk.path("policy"), "--base", &desk.path("base"), "--deny", "warnings"]).exits(1);
    // Of other files it says nothing.
    desk.put("base/CLAUDE_CMDS.md", narrower());
    assert!(!check().all().contains("compiler-change"));
}

// --- The flow.

#[test]
fn a_set_is_compiled_signed_verified_narrowed_and_not_widened() {
    let desk = Desk::new();
    let first = compile_bundle(&desk);
    let signed = desk.sign("a.pem", &["--initial"]).exits(0);
    assert!(signed.out.contains("sequence 1 signed by release-a") && signed.out.contains("4 files"), "{}", signed.out);
    assert_eq!(signed.err, "", "a green check without findings says nothing");
    let verified = desk.verify(&["--enforce"]).exits(0);
    assert!(verified.out.contains(&format!("policy_id {first}")), "{}", verified.out);
    let names: Vec<String> = payload(&desk).files.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["CLAUDE_CMDS.md", "guardrails/base.cedar", "polctl.bundle", "polctl.yaml"]);
    desk.commit(&["policy"]);

    // A narrowing: shown, and signed with its base.
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    let second = compile_bundle(&desk);
    let signed = desk.sign("a.pem", &["--base", "HEAD"]).exits(0);
    assert!(
        signed.err.contains("commands: no longer permitted at tier ") && signed.err.contains("no widenings"),
        "{}",
        signed.err
    );
    assert!(signed.out.contains("sequence 2"), "{}", signed.out);
    desk.verify(&["--enforce", "--expect", &second]).exits(0);
    desk.verify(&["--enforce", "--expect", &first]).exits(4).says("policy-changed");
    assert_eq!(payload(&desk).base, polctl::sign::Base::NoWidening { policy_id: Digest::parse(&first).unwrap() });
    desk.commit(&["policy"]);

    // A widening: refused, nothing is written, and what was signed stays good.
    let before = policy(&desk);
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    compile_bundle(&desk);
    let changed = policy(&desk);
    let refused = desk.sign("a.pem", &["--base", "HEAD"]).exits(1).says("widening");
    assert!(refused.err.contains("goes from tier 2 to tier 0"), "{}", refused.err);
    assert!(refused.err.contains("the check is red, so nothing was signed"), "{}", refused.err);
    assert_eq!(policy(&desk), changed);
    assert_eq!(changed[ENVELOPE], before[ENVELOPE]);
    desk.verify(&["--enforce"]).exits(4);
    for (name, bytes) in &before {
        desk.put(&format!("policy/{name}"), bytes);
    }
    desk.verify(&["--enforce", "--expect", &second]).exits(0);
}

#[test]
fn what_is_wrong_by_itself_is_not_signed() {
    let desk = Desk::new();
    for (text, code, exit) in [
        (red(), "example-fails", 1),
        (MAP.replace("surface: commands", "surface: comands"), "invalid-value", 2),
        (MAP.replace("Tier 0", "Tier O"), "tier-heading", 2),
    ] {
        desk.put("policy/CLAUDE_CMDS.md", &text);
        let run = desk.sign("a.pem", &["--initial"]).exits(exit);
        assert!(run.codes().contains(&code), "{code}: {}", run.err);
        assert!(!run.codes().iter().any(|code| code.starts_with("file-")), "{}", run.err);
        assert!(run.err.contains("nothing was signed"), "{}", run.err);
        assert!(!policy(&desk).contains_key(ENVELOPE));
    }
}

#[test]
fn a_stale_bundle_is_not_signed() {
    let desk = Desk::new();
    compile_bundle(&desk);
    let good = desk.get("policy/polctl.bundle");
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    let run = desk.sign("a.pem", &["--initial"]).exits(1);
    assert!(run.err.contains("run `polctl compile --bundle` first"), "{}", run.err);
    assert!(!policy(&desk).contains_key(ENVELOPE));
    // Prose has no policy, and a bundle names the lines that it comes from.
    desk.put("policy/CLAUDE_CMDS.md", MAP.replace("# Commands\n", "# Commands\n\nMore prose.\n"));
    desk.sign("a.pem", &["--initial"]).exits(1);
    // A bundle that somebody changed.
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    for at in [0, good.len() / 2, good.len() - 1] {
        let mut changed = good.clone();
        changed[at] ^= 1;
        desk.put("policy/polctl.bundle", changed);
        desk.sign("a.pem", &["--initial"]).exits(1);
    }
    desk.put("policy/polctl.bundle", good);
    desk.sign("a.pem", &["--initial"]).exits(0);
}

#[test]
fn what_is_no_policy_is_refused_with_help() {
    let desk = Desk::new();
    for (name, ignored) in
        [("README.md", "README.md"), ("guardrails/notes.txt", "guardrails/notes.txt"), ("old/CLAUDE_CMDS.md", "old")]
    {
        desk.put(&format!("policy/{name}"), MAP);
        let run = desk.sign("a.pem", &["--initial"]).exits(2).says("file-extra");
        let words = run.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("`{name}` stands in the policy directory")), "{words}");
        assert!(words.contains("name it in `polctl.yaml`") && words.contains("`--ignore`"), "{words}");
        assert!(!policy(&desk).contains_key(ENVELOPE));
        desk.sign("a.pem", &["--initial", "--ignore", ignored]).exits(0);
        desk.verify(&["--enforce", "--no-state", "--ignore", ignored]).exits(0);
        desk.verify(&["--enforce"]).exits(4).says("file-extra");
        std::fs::remove_file(desk.path(&format!("policy/{name}"))).unwrap();
        drop(std::fs::remove_dir(desk.path("policy/old")));
        std::fs::remove_file(desk.path(&format!("policy/{ENVELOPE}"))).unwrap();
    }
    // A directory in which nothing is left is one that hosts refuse.
    std::fs::create_dir(desk.path("policy/empty")).unwrap();
    desk.sign("a.pem", &["--initial"]).exits(2).says("file-extra");
    desk.put("policy/empty/notes.txt", "");
    desk.sign("a.pem", &["--initial", "--ignore", "empty/notes.txt"]).exits(2).says("file-extra");
    std::fs::remove_dir_all(desk.path("policy/empty")).unwrap();
    assert!(!policy(&desk).contains_key(ENVELOPE));
    // A guardrail that the configuration's pattern finds is policy.
    let guardrail = "forbid (principal, action, resource is Commands::Host) when { context.program == \"dd\" };\n";
    desk.put("policy/guardrails/more.cedar", guardrail);
    assert!(desk.sign("a.pem", &["--initial"]).exits(0).out.contains("4 files"));
}

#[test]
fn a_directory_is_no_base_of_itself() {
    let desk = Desk::new();
    desk.key("c.pem", "approver", "approve");
    let policy = desk.path("policy");
    std::os::unix::fs::symlink(&policy, desk.path("also")).unwrap();
    for base in [policy, desk.path("also"), desk.path("policy/"), desk.path("policy/../policy")] {
        let run = desk.sign("a.pem", &["--base", &base]).exits(2);
        assert!(run.err.contains("is the policy directory itself"), "{}", run.err);
        assert!(approve(&desk, &base, &[]).exits(2).err.contains("is the policy directory itself"));
    }
    // Another directory is one.
    for (name, text) in files() {
        desk.put(&format!("old/{name}"), text);
    }
    desk.sign("a.pem", &["--base", &desk.path("old")]).exits(0);
    desk.put("policy/CLAUDE_CMDS.md", wider());
    desk.sign("a.pem", &["--base", &desk.path("old")]).exits(1).says("widening");
}

/// Revisions are those of the repository that the policy is in, which may be the directory itself.
#[test]
fn the_policy_directory_may_be_the_repository() {
    let desk = Desk::new();
    let policy = desk.root.path().join("policy");
    git(&policy, &["init", "-q"]);
    git(&policy, &["add", "-A", "."]);
    git(&policy, &["commit", "-q", "-m", "policy"]);
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    desk.sign("a.pem", &["--base", "HEAD"]).exits(0);
    desk.verify(&["--enforce"]).exits(0);
    // Said once more, `.git` is no longer left out by itself.
    desk.verify(&["--enforce", "--ignore", "README.md"]).exits(4).says("file-extra");
}

// --- Approvals.

/// A repository whose base pins `c.pem` for approvals; the working tree widens.
fn widened() -> Desk {
    let desk = Desk::new();
    desk.key("c.pem", "approver", "approve");
    desk.commit(&["policy", "trust.json"]);
    desk.put("policy/CLAUDE_CMDS.md", wider());
    desk
}

/// Approves with `c.pem` into `approval.json`.
fn approve(desk: &Desk, base: &str, more: &[&str]) -> Run {
    let (policy, trust, key, output) =
        (desk.path("policy"), desk.path("trust.json"), desk.path("c.pem"), desk.path("approval.json"));
    let args = ["approve", "-C", &policy, "--trust", &trust, "--base", base, "--key-file", &key, "-o", &output];
    let who = ["--approver", "approver", "--reason", "wanted\nby all"];
    polctl(&[&args[..], &who, more].concat())
}

/// The arguments that give approvals, with the trust file `trust.json`.
fn given<'a>(base: &'a str, trust: &'a str, approvals: &'a [String]) -> Vec<&'a str> {
    let mut args = vec!["--base", base, "--approval-trust", trust];
    approvals.iter().for_each(|approval| args.extend(["--approval", approval]));
    args
}

fn check_with(desk: &Desk, args: &[&str]) -> Run {
    polctl(&[&["check", "-C", &desk.path("policy")], args].concat())
}

/// Code, level and message of each finding of `check`, which exits with `code`.
#[track_caller]
fn check(desk: &Desk, base: &str, approvals: &[&str], code: i32) -> Vec<(String, String, String)> {
    let approvals: Vec<String> = approvals.iter().map(|name| desk.path(name)).collect();
    let trust = desk.path("trust.json");
    let args = given(base, &trust, &approvals);
    let run = check_with(desk, &[&args[..], &["--format", "json"]].concat()).exits(code);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["exit_code"], code);
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    // The rules of the example could be one; that is not what is judged here.
    let findings = report["findings"].as_array().unwrap().iter().filter(|f| f["code"] != "mergeable");
    findings.map(|f| (text(f, "code"), text(f, "level"), text(f, "message"))).collect()
}

/// The message of the one finding `approval` of a check that fails; the widening stays an error.
#[track_caller]
fn refused_approval(desk: &Desk, base: &str, approval: &str) -> String {
    let findings = check(desk, base, &[approval], 1);
    assert!(findings.iter().all(|(code, level, _)| level == "error" || code == "narrowing"), "{findings:?}");
    let mut messages: Vec<_> = findings.into_iter().filter(|(code, ..)| code == "approval").collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0).2
}

/// The good approval, changed and signed anew by the approver.
fn approved_anew(desk: &Desk, change: impl FnOnce(&mut Approval)) -> Vec<u8> {
    let mut approval = Approval::parse(Envelope::parse(&desk.get("approval.json")).unwrap().payload()).unwrap();
    change(&mut approval);
    let trust = Trust::parse(&desk.get("trust.json")).unwrap();
    let signer = FileSigner::open(Path::new(&desk.path("c.pem"))).unwrap();
    sign(APPROVAL_TYPE, approval.to_bytes(), Role::Approve, &signer, &trust, now()).unwrap().0.to_bytes()
}

#[test]
fn an_approved_widening_passes_and_is_signed() {
    let desk = widened();
    let old = payload_id(&desk, "HEAD", "old");
    assert_eq!(check(&desk, "HEAD", &[], 1)[0].0, "widening");
    desk.sign("a.pem", &["--base", "HEAD"]).exits(1).says("widening");
    let said = approve(&desk, "HEAD", &[]).exits(0);
    assert!(said.out.contains("1 findings of fleet-test approved by approver"), "{}", said.out);

    let findings = check(&desk, "HEAD", &["approval.json"], 0);
    let [(code, level, message)] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((code.as_str(), level.as_str()), ("widening", "note"));
    assert!(message.starts_with("approved by approver until 2") && message.contains(" (wanted by all): "), "{message}");
    assert!(message.ends_with("`git log --all` goes from tier 2 to tier 0"), "{message}");
    let approvals = [desk.path("approval.json")];
    let trust = desk.path("trust.json");
    let args = given("HEAD", &trust, &approvals);
    let shown = check_with(&desk, &args).exits(0).out;
    assert!(
        shown.contains("commands: permitted from now on, as approved at tier ")
            && !shown.contains("no longer permitted"),
        "{shown}"
    );
    assert!(shown.contains("polctl check: ok: 1 widening (1 approved), no narrowings"), "{shown}");
    // A path is a path, whatever directory it is said in.
    let mut command = sign_common::command(&["check", "-C", ".", "--base", "HEAD", "--approval", "../approval.json"]);
    command.args(["--approval-trust", "../trust.json"]).current_dir(desk.path("policy"));
    finish(command).exits(0);

    desk.sign("a.pem", &args).exits(0);
    let approval = Digest::of(Envelope::parse(&desk.get("approval.json")).unwrap().payload());
    assert_eq!(payload(&desk).base, polctl::sign::Base::Approved { policy_id: old, approvals: vec![approval] });
    desk.verify(&["--enforce"]).exits(0);
    // A second signer who has not got the approval signs something else.
    desk.key("b.pem", "release-b", "release");
    desk.sign("b.pem", &["--base", "HEAD", "--add"]).exits(1).says("widening");
    desk.sign("b.pem", &[&args[..], &["--add"]].concat()).exits(0);
    desk.verify(&["--enforce"]).exits(0);
}

/// `policy_id` of a version, as the check says it.
fn payload_id(desk: &Desk, base: &str, which: &str) -> Digest {
    let run = check_with(desk, &["--base", base, "--format", "json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    Digest::parse(report["compared"][which]["policy_id"].as_str().unwrap()).unwrap()
}

#[test]
fn an_approval_needs_a_base_and_a_trust_file() {
    let desk = widened();
    approve(&desk, "HEAD", &[]).exits(0);
    let (approval, trust) = (desk.path("approval.json"), desk.path("trust.json"));
    for args in [
        &["--initial", "--approval", &approval, "--approval-trust", &trust][..],
        &["--base", "HEAD", "--approval", &approval],
        &["--base", "HEAD", "--approval", &desk.path("absent.json"), "--approval-trust", &trust],
    ] {
        assert!(!check_with(&desk, args).exits(2).err.is_empty());
        assert!(!desk.sign("a.pem", args).exits(2).err.is_empty());
    }
    // Nothing to approve.
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    assert!(approve(&desk, "HEAD", &[]).exits(2).err.contains("widens nothing"));
    desk.put("policy/CLAUDE_CMDS.md", wider().replace("- `git status **`\n", "- `git status **`\n  - match: `ls`\n"));
    assert!(approve(&desk, "HEAD", &[]).exits(2).err.contains("only widenings can be approved"));
}

#[test]
fn approvals_that_do_not_hold_are_findings() {
    let desk = widened();
    approve(&desk, "HEAD", &[]).exits(0);
    check(&desk, "HEAD", &["approval.json"], 0);
    desk.sign("a.pem", &["--initial"]).exits(0);
    let release = desk.get(&format!("policy/{ENVELOPE}"));
    std::fs::remove_file(desk.path(&format!("policy/{ENVELOPE}"))).unwrap();
    let anew = |change: &dyn Fn(&mut Approval)| approved_anew(&desk, change);
    let other = Digest::of(b"other");
    let mut bent = desk.get("approval.json");
    let at = bent.windows(6).position(|w| w == b"\"sig\":").unwrap() + 20;
    bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
    // Each in one way wrong, with what is said about it.
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("expired", anew(&|a| (a.issued, a.expires) = (now().plus(-2 * DAY), now().plus(-DAY))), "expired"),
        ("early", anew(&|a| a.issued = now().plus(DAY)), "issued"),
        ("base", anew(&|a| a.old_policy_id = other), "the old policy"),
        ("version", anew(&|a| a.new_policy_id = other), "the new policy"),
        ("approver", anew(&|a| a.approver = "release-a".into()), "the approver"),
        ("set", anew(&|a| a.set = "fleet-prod".into()), "fleet-prod"),
        ("more", anew(&|a| _ = a.findings.insert(other)), "about a widening that this change does not make"),
        ("empty", Vec::new(), "not one JSON value"),
        ("large", vec![b' '; 2 * 1024 * 1024], "larger"),
        ("bent", bent, "does not fit"),
        ("release", release, "policy-set"),
    ];
    for (name, bytes, _) in &cases {
        desk.put(&format!("{name}.json"), bytes);
    }
    let names: Vec<String> = cases.iter().map(|(name, ..)| format!("{name}.json")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let findings = check(&desk, "HEAD", &names, 1);
    let about: Vec<_> = findings.iter().filter(|(code, ..)| code == "approval").collect();
    assert_eq!(about.len(), cases.len(), "{about:?}");
    for (name, _, why) in &cases {
        let one = about.iter().find(|(_, _, message)| message.contains(&format!("/{name}.json` "))).unwrap();
        assert!(one.1 == "error" && one.2.contains(why), "{name}: {one:?}");
    }
    // Alone, none of them lets the widening pass; one covers it, and is a finding all the same.
    for (name, code) in [("expired.json", "error"), ("more.json", "note")] {
        let findings = check(&desk, "HEAD", &[name], 1);
        let widening = findings.iter().find(|(code, ..)| code == "widening").unwrap();
        assert_eq!(widening.1, code, "{findings:?}");
        let approvals = [desk.path(name)];
        let run = desk.sign("a.pem", &given("HEAD", &desk.path("trust.json"), &approvals)).exits(1);
        assert!(run.codes().contains(&"approval"), "{}", run.err);
    }
    // A bad one spoils a good one.
    let findings = check(&desk, "HEAD", &["approval.json", "expired.json"], 1);
    let levels: BTreeSet<_> = findings.iter().map(|(code, level, _)| (code.as_str(), level.as_str())).collect();
    assert_eq!(levels, [("approval", "error"), ("widening", "note")].into());
    let approvals = [desk.path("approval.json"), desk.path("expired.json")];
    desk.sign("a.pem", &given("HEAD", &desk.path("trust.json"), &approvals)).exits(1).says("approval");
    assert!(!policy(&desk).contains_key(ENVELOPE));
}

#[test]
fn an_approval_is_for_one_change_only() {
    let desk = widened();
    approve(&desk, "HEAD", &[]).exits(0);
    // Edited after it was approved: more, or less.
    desk.put("policy/CLAUDE_CMDS.md", wider().replace("- `git status **`\n", "- `git status **`\n- `git diff **`\n"));
    assert!(refused_approval(&desk, "HEAD", "approval.json").contains("the new policy"));
    desk.put("policy/CLAUDE_CMDS.md", wider().replace("- `git status **`\n", ""));
    assert!(refused_approval(&desk, "HEAD", "approval.json").contains("the new policy"));
    // The change was taken back: the approval is left over, and nothing widens.
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    assert_eq!(check(&desk, "HEAD", &[], 0), []);
    assert!(refused_approval(&desk, "HEAD", "approval.json").contains("the new policy"));
    // The base moved on: the same widening of another policy.
    desk.put("policy/CLAUDE_CMDS.md", MAP.replace("- `git status **`\n", "- `git status **`\n- `git diff **`\n"));
    desk.commit(&["policy"]);
    desk.put("policy/CLAUDE_CMDS.md", wider());
    assert!(refused_approval(&desk, "HEAD", "approval.json").contains("the old policy"));
    check(&desk, "HEAD~1", &["approval.json"], 0);
}

#[test]
fn an_approval_covers_what_it_names_and_nothing_else() {
    let desk = widened();
    let both = wider().replace("- `git status **`\n", "- `git {status,diff} **`\n");
    desk.put("policy/CLAUDE_CMDS.md", &both);
    let widenings = check(&desk, "HEAD", &[], 1).len();
    assert!(widenings >= 2, "{widenings}");
    approve(&desk, "HEAD", &[]).exits(0);
    assert!(check(&desk, "HEAD", &["approval.json"], 0).iter().all(|(_, level, _)| level == "note"));
    let all = Approval::parse(Envelope::parse(&desk.get("approval.json")).unwrap().payload()).unwrap().findings;
    assert_eq!(all.len(), widenings);
    let (first, rest) = (*all.first().unwrap(), all.iter().copied().skip(1).collect::<BTreeSet<_>>());
    // One of them: the others stay errors.
    desk.put("first.json", approved_anew(&desk, |a| a.findings = [first].into()));
    let findings = check(&desk, "HEAD", &["first.json"], 1);
    let level = |wanted: &str| findings.iter().filter(|(_, level, _)| level == wanted).count();
    assert_eq!((level("note"), level("error")), (1, widenings - 1), "{findings:?}");
    desk.sign("a.pem", &given("HEAD", &desk.path("trust.json"), &[desk.path("first.json")])).exits(1).says("widening");
    // Two approvals, each of a part; and two of the same, which say it twice.
    desk.put("rest.json", approved_anew(&desk, |a| a.findings = rest.clone()));
    for pair in [["first.json", "rest.json"], ["approval.json", "first.json"]] {
        let findings = check(&desk, "HEAD", &pair, 0);
        assert!(findings.iter().all(|(_, _, message)| message.matches("approved by").count() == 1), "{findings:?}");
    }
    let approvals = [desk.path("rest.json"), desk.path("first.json")];
    desk.sign("a.pem", &given("HEAD", &desk.path("trust.json"), &approvals)).exits(0);
    let polctl::sign::Base::Approved { approvals, .. } = payload(&desk).base else { panic!("not approved") };
    assert_eq!(approvals.len(), 2);
}

#[test]
fn two_approvers_are_needed_where_the_base_says_so() {
    let desk = widened();
    desk.key("d.pem", "second", "approve");
    let mut trust: Value = serde_json::from_slice(&desk.get("trust.json")).unwrap();
    trust["threshold"]["approve"] = 2.into();
    desk.put("trust.json", sign_common::bytes(&trust));
    desk.commit(&["trust.json"]);
    approve(&desk, "HEAD", &[]).exits(0);
    assert!(refused_approval(&desk, "HEAD", "approval.json").contains("1 of 2 signers"));
    // Lowering the threshold is no way around it: the base counts.
    trust["threshold"]["approve"] = 1.into();
    desk.put("trust.json", sign_common::bytes(&trust));
    refused_approval(&desk, "HEAD", "approval.json");
    trust["threshold"]["approve"] = 2.into();
    desk.put("trust.json", sign_common::bytes(&trust));
    let (policy, trust, key, output) =
        (desk.path("policy"), desk.path("trust.json"), desk.path("d.pem"), desk.path("approval.json"));
    polctl(&[
        "approve",
        "-C",
        &policy,
        "--trust",
        &trust,
        "--base",
        "HEAD",
        "--key-file",
        &key,
        "-o",
        &output,
        "--approver",
        "second",
        "--reason",
        "as well",
        "--add",
    ])
    .exits(0);
    check(&desk, "HEAD", &["approval.json"], 0);
}

#[test]
fn a_change_cannot_bring_the_key_that_approves_it() {
    let desk = Desk::new();
    desk.commit(&["policy", "trust.json"]);
    desk.put("policy/CLAUDE_CMDS.md", wider());
    // The change pins its own approver, in the working tree and then in its commit.
    desk.key("c.pem", "approver", "approve");
    approve(&desk, "HEAD", &[]).exits(0);
    let message = refused_approval(&desk, "HEAD", "approval.json");
    assert!(message.contains("does not pin"), "{message}");
    let approvals = [desk.path("approval.json")];
    let run = desk.sign("a.pem", &given("HEAD", &desk.path("trust.json"), &approvals)).exits(1);
    assert!(run.codes().contains(&"approval") && !policy(&desk).contains_key(ENVELOPE), "{}", run.err);
    desk.commit(&["policy", "trust.json"]);
    refused_approval(&desk, "HEAD~1", "approval.json");
    // For the next change it counts.
    desk.put("policy/CLAUDE_CMDS.md", wider().replace("- `git status **`\n", "- `git status **`\n- `git diff **`\n"));
    approve(&desk, "HEAD", &[]).exits(0);
    check(&desk, "HEAD", &["approval.json"], 0);
    // Taking the key away, or the file, changes nothing about this change: the base has them.
    let trust = desk.get("trust.json");
    desk.put("trust.json", "{}");
    check(&desk, "HEAD", &["approval.json"], 0);
    std::fs::remove_file(desk.path("trust.json")).unwrap();
    check(&desk, "HEAD", &["approval.json"], 0);
    desk.put("trust.json", trust);
}

#[test]
fn a_trust_file_that_the_base_does_not_have_is_refused() {
    let desk = widened();
    approve(&desk, "HEAD", &[]).exits(0);
    let approval = desk.path("approval.json");
    let trusting = |trust: &str, base: &str| {
        let args = ["--base", base, "--approval", &approval, "--approval-trust", trust];
        let signed = desk.sign("a.pem", &args).exits(2);
        let checked = check_with(&desk, &args).exits(2);
        assert_eq!(signed.err, checked.err);
        assert!(!policy(&desk).contains_key(ENVELOPE));
        checked
    };
    let trust = desk.get("trust.json");
    // Not at the base.
    desk.put("new/trust.json", &trust);
    trusting(&desk.path("new/trust.json"), "HEAD");
    // In the policy directory, at the base as well.
    desk.put("policy/trust.json", &trust);
    desk.commit(&["policy/trust.json"]);
    trusting(&desk.path("policy/trust.json"), "HEAD").says("trust-inside-policy");
    trusting(&desk.path("policy/../policy/trust.json"), "HEAD").says("trust-inside-policy");
    std::fs::remove_file(desk.path("policy/trust.json")).unwrap();
    // Through a link that the change brings.
    let other = Desk::new();
    other.key("x.pem", "approver", "approve");
    other.commit(&["trust.json"]);
    other.commit(&["trust.json"]);
    std::os::unix::fs::symlink(other.root.path(), desk.path("link")).unwrap();
    let run = trusting(&desk.path("link/trust.json"), "HEAD");
    assert!(run.err.contains("does not lie in the repository"), "{}", run.err);
    // In another repository, where the base is the name of something else.
    let run = trusting(&other.path("trust.json"), "HEAD");
    assert!(run.err.contains("does not lie in the repository"), "{}", run.err);
    // In a submodule that the change brings.
    git(desk.root.path(), &["submodule", "--quiet", "add", other.root.path().to_str().unwrap(), "module"]);
    let run = trusting(&desk.path("module/trust.json"), "HEAD");
    assert!(run.err.contains("does not lie in the repository"), "{}", run.err);
    // Outside of every repository.
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("trust.json"), &trust).unwrap();
    let run = trusting(outside.path().join("trust.json").to_str().unwrap(), "HEAD");
    assert!(run.err.contains("does not lie in the repository"), "{}", run.err);
    // Beside a directory as the base, the file that was named counts, and must be nobody else's.
    for (name, text) in files() {
        desk.put(&format!("old/{name}"), text);
    }
    let old = desk.path("old");
    desk.put("policy/trust.json", &trust);
    trusting(&desk.path("policy/trust.json"), &old).says("trust-inside-policy");
    std::fs::remove_file(desk.path("policy/trust.json")).unwrap();
    std::fs::set_permissions(desk.path("trust.json"), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    trusting(&desk.path("trust.json"), &old).says("trust-writable");
    std::fs::set_permissions(desk.path("trust.json"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    check(&desk, &old, &["approval.json"], 0);
    check(&desk, "HEAD", &["approval.json"], 0);
}

/// A change of the configuration is approved as one of a rule is.
#[test]
fn widenings_of_the_configuration_are_approved_too() {
    let desk = widened();
    desk.put("policy/CLAUDE_CMDS.md", MAP);
    std::fs::remove_file(desk.path("policy/guardrails/base.cedar")).unwrap();
    desk.put(
        "policy/polctl.yaml",
        "polctl: v1\nset: fleet-test\npolicies: [CLAUDE_CMDS.md]\nallowed_env: [LANG, PAGER]\n",
    );
    let found = check(&desk, "HEAD", &[], 1);
    // The name in the environment, and what the guardrail stopped that is gone.
    let codes: Vec<&str> = found.iter().map(|(code, ..)| code.as_str()).filter(|code| *code != "narrowing").collect();
    assert_eq!(codes, ["config-widening", "widening"], "{found:?}");
    approve(&desk, "HEAD", &[]).exits(0);
    check(&desk, "HEAD", &["approval.json"], 0);
}

// --- The envelope's name.

fn configured(desk: &Desk, name: &str) {
    let text = files()[2].1;
    desk.put("policy/polctl.yaml", format!("{text}signing: {{ envelope: {name} }}\n"));
}

#[test]
fn the_configuration_names_the_envelope() {
    let desk = Desk::new();
    configured(&desk, "release.sig.json");
    compile_bundle(&desk);
    desk.sign("a.pem", &["--initial"]).exits(0);
    assert!(policy(&desk).contains_key("release.sig.json") && !policy(&desk).contains_key(ENVELOPE));
    let verified = desk.verify(&["--enforce"]).exits(0);
    assert!(verified.out.contains("4 files"), "{}", verified.out);
    assert_eq!(hook(&desk, "git status").0, "allow");
    assert!(desk.sign("a.pem", &["--initial"]).exits(0).out.contains("sequence 2"), "it is found again");
    // What is given counts, in the directory or elsewhere.
    desk.verify(&["--enforce", "--envelope", ENVELOPE]).exits(4).says("envelope-missing");
    std::fs::rename(desk.path("policy/release.sig.json"), desk.path("e.json")).unwrap();
    desk.verify(&["--enforce"]).exits(4).says("envelope-missing");
    desk.verify(&["--enforce", "--envelope", &desk.path("e.json")]).exits(0);
    // A set that goes on to another name leaves an envelope behind that nobody signed.
    std::fs::rename(desk.path("e.json"), desk.path("policy/release.sig.json")).unwrap();
    configured(&desk, "next.sig.json");
    compile_bundle(&desk);
    desk.sign("a.pem", &["--initial"]).exits(2).says("file-extra");
    std::fs::rename(desk.path("policy/release.sig.json"), desk.path("policy/next.sig.json")).unwrap();
    assert!(desk.sign("a.pem", &["--initial"]).exits(0).out.contains("sequence 3"));
    desk.verify(&["--enforce"]).exits(0);
}

/// Whoever changes the configuration chooses where verification looks, and nothing else.
#[test]
fn an_unverified_configuration_decides_nothing() {
    let desk = Desk::new();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let envelope = desk.get(&format!("policy/{ENVELOPE}"));
    let good = desk.get("policy/polctl.yaml");
    desk.put("outside.json", &envelope);
    for (name, code) in [
        ("../outside.json", "file-name-escapes"),
        (&desk.path("outside.json"), "file-name-absolute"),
        ("guardrails/../../outside.json", "file-name-escapes"),
        ("\"\"", "file-name-length"),
        ("absent.json", "envelope-missing"),
        ("CLAUDE_CMDS.md", "envelope-syntax"),
        ("polctl.yaml", "envelope-syntax"),
        (ENVELOPE, "file-size"),
    ] {
        configured(&desk, name);
        let run = desk.verify(&["--enforce", "--emit", "-"]).exits(4).says(code);
        assert_eq!(run.out, "", "{name}");
        assert_eq!(hook(&desk, "git status").0, "deny", "{name}");
    }
    // The envelope goes along with the name: it does not cover the configuration that says so.
    configured(&desk, "moved.json");
    std::fs::rename(desk.path(&format!("policy/{ENVELOPE}")), desk.path("policy/moved.json")).unwrap();
    desk.verify(&["--enforce"]).exits(4).says("file-size");
    // What cannot be read, or is none, names nothing.
    desk.put(&format!("policy/{ENVELOPE}"), &envelope);
    std::fs::remove_file(desk.path("policy/moved.json")).unwrap();
    for text in [
        "signing: [",
        "signing:\n  envelope: [a, b]\n",
        "signing: moved.json\n",
        "\u{202e}signing: {envelope: moved.json}\n",
        "",
    ] {
        desk.put("policy/polctl.yaml", text);
        desk.verify(&["--enforce"]).exits(4).says("file-size");
    }
    std::fs::remove_file(desk.path("policy/polctl.yaml")).unwrap();
    desk.verify(&["--enforce"]).exits(4).says("file-missing");
    std::os::unix::fs::symlink(desk.path("outside.yaml"), desk.path("policy/polctl.yaml")).unwrap();
    desk.put("outside.yaml", format!("{}signing: {{ envelope: moved.json }}\n", files()[2].1));
    desk.verify(&["--enforce"]).exits(4).says("file-symlink");
    std::fs::remove_file(desk.path("policy/polctl.yaml")).unwrap();
    desk.put("policy/polctl.yaml", good);
    desk.verify(&["--enforce"]).exits(0);
}

#[test]
fn what_signing_may_say_is_checked() {
    let desk = Desk::new();
    let cases: &[(&str, &str, &str)] = &[
        ("signing: { envelope: ../e.json }", "invalid-value", "`../e.json` is no plain file name"),
        ("signing: { envelope: /etc/e.json }", "invalid-value", "`/etc/e.json` is no plain file name"),
        ("signing: { envelope: a/e.json }", "invalid-value", "`a/e.json` is no plain file name"),
        ("signing: { envelope: .hidden }", "invalid-value", "`.hidden` is no plain file name"),
        ("signing: { envelope: \"\" }", "invalid-value", "`` is no plain file name"),
        ("signing: { envelope: polctl.yaml }", "invalid-value", "`polctl.yaml` is the name of a policy file"),
        ("signing: { envelope: Polctl.Bundle }", "invalid-value", "`Polctl.Bundle` is the name of a policy file"),
        ("signing: { envelope: claude_cmds.md }", "invalid-value", "`claude_cmds.md` is the name of a policy file"),
        ("signing: { envelope: x.cedar }", "invalid-value", "`x.cedar` is the name of a policy file"),
        ("signing: { envelope: [a] }", "invalid-value", "`envelope` must be a single value"),
        ("signing: e.json", "invalid-value", "`signing` must be a mapping"),
        ("signing: { envelop: e.json }", "unknown-key", "`envelop` is no key of `signing`"),
        ("signing: { trust: /etc/t.json }", "unknown-key", "`trust` is no key of `signing`"),
    ];
    for (line, code, message) in cases {
        desk.put("policy/polctl.yaml", format!("{}{line}\n", files()[2].1));
        let run = check_with(&desk, &["--initial", "--format", "json"]).exits(2);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{line}: {findings:?}");
        assert_eq!(findings[0]["code"], *code, "{line}");
        assert!(findings[0]["message"].as_str().unwrap().starts_with(message), "{line}: {findings:?}");
        // By hand: the fifth line, at the value or key that is wrong.
        assert_eq!(findings[0]["location"]["start"]["line"], 5, "{line}");
        let column = if line.contains('{') { line.find(": ").unwrap() + 5 } else { 10 };
        let column = if line.contains("envelope:") { line.find("envelope: ").unwrap() + 11 } else { column };
        assert_eq!(findings[0]["location"]["start"]["column"], column, "{line}");
        desk.sign("a.pem", &["--initial"]).exits(2);
        assert_eq!(policy(&desk).len(), 3, "{line}: something was written");
    }
    for line in ["signing: {}", "signing: { envelope: polctl.sig.json }", "signing:\n  envelope: a-b_C.9"] {
        desk.put("policy/polctl.yaml", format!("{}{line}\n", files()[2].1));
        assert_eq!(check_with(&desk, &["--initial"]).exits(0).out, "polctl check: ok: no errors\n", "{line}");
    }
}

// --- The hook.

/// The hook's decision and reason for a line, with the trust file and a state.
fn hook(desk: &Desk, line: &str) -> (String, String) {
    let (policy, trust, state) = (desk.path("policy"), desk.path("trust.json"), desk.path("hook-state.json"));
    let mut command = sign_common::command(&["hook", "-p", &policy, "--trust", &trust, "--state", &state]);
    command.env_remove("ESCAPE_HATCH").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let event = json!({
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": line}, "cwd": "/srv/agents/app",
    });
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(event.to_string().as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |key: &str| answer["hookSpecificOutput"][key].as_str().unwrap().to_owned();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

/// Denied, since the policy is not verified for this reason.
#[track_caller]
fn denied(desk: &Desk, why: &str) {
    let (decision, reason) = hook(desk, "git status");
    assert_eq!(decision, "deny", "{reason}");
    assert!(reason.contains("the policy is not verified: ") && reason.contains(why), "{reason}");
}

/// A signed set with its bundle.
fn guarded() -> Desk {
    let desk = Desk::new();
    compile_bundle(&desk);
    desk.sign("a.pem", &["--initial"]).exits(0);
    desk
}

#[test]
fn the_hook_decides_with_a_verified_set() {
    let desk = guarded();
    assert_eq!(hook(&desk, "git status").0, "allow");
    assert_eq!(hook(&desk, "git log --all").0, "ask");
    assert_eq!(hook(&desk, "rm -r /srv").0, "deny");
    assert_eq!(hook(&desk, "shred x").0, "deny", "the guardrail is in the bundle");
    let (policy, trust, state) = (desk.path("policy"), desk.path("trust.json"), desk.path("hook-state.json"));
    let test = polctl(&["hook", "-p", &policy, "--trust", &trust, "--state", &state, "--self-test"]).exits(0);
    assert!(test.out.contains("self-test ok: set `fleet-test`, verified"), "{}", test.out);
    // Without a bundle there is nothing to decide with, however well it is signed.
    std::fs::remove_file(desk.path("policy/polctl.bundle")).unwrap();
    desk.sign("a.pem", &["--initial"]).exits(0);
    let (decision, reason) = hook(&desk, "git status");
    assert!(decision == "deny" && reason.contains("polctl compile --bundle"), "{reason}");
}

#[test]
fn the_hook_denies_when_any_byte_is_another() {
    let desk = guarded();
    let good = policy(&desk);
    assert_eq!(good.len(), 5, "{:?}", good.keys());
    for (name, bytes) in &good {
        let last = bytes.len() - 1;
        let places: BTreeSet<usize> = (0..=6).map(|part| last * part / 6).collect();
        for at in places {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            desk.put(&format!("policy/{name}"), changed);
            let (decision, reason) = hook(&desk, "git status");
            assert!(decision == "deny" && reason.contains("not verified"), "{name} byte {at}: {decision} {reason}");
        }
        // More than its line end: an envelope means the same without.
        desk.put(&format!("policy/{name}"), &bytes[..last - 1]);
        denied(&desk, "");
        std::fs::remove_file(desk.path(&format!("policy/{name}"))).unwrap();
        denied(&desk, "");
        desk.put(&format!("policy/{name}"), bytes);
    }
    desk.put("policy/more.md", "");
    denied(&desk, "`more.md` stands in the policy directory and is not signed");
    std::fs::remove_file(desk.path("policy/more.md")).unwrap();
    assert_eq!(hook(&desk, "git status").0, "allow", "as it was");
}

#[test]
fn the_hook_denies_what_is_missing_old_or_signed_by_another() {
    let desk = guarded();
    let file = format!("policy/{ENVELOPE}");
    let first = desk.get(&file);
    assert_eq!(hook(&desk, "git status").0, "allow");
    std::fs::remove_file(desk.path(&file)).unwrap();
    denied(&desk, "there is no envelope `polctl.sig.json`");
    desk.put(&file, &first);

    let trust = Trust::parse(&desk.get("trust.json")).unwrap();
    let anew = |change: fn(&mut PolicySet)| signed_anew(&desk, "a.pem", &trust, change);
    let expired = anew(|set| (set.issued, set.expires) = (now().plus(-9 * DAY), now().plus(-DAY)));
    let early = anew(|set| set.issued = now().plus(DAY));
    let reused = anew(|set| set.expires = set.expires.plus(1));
    for (envelope, why) in [(expired, "expired"), (early, "not yet"), (reused, "sequence")] {
        desk.put(&file, envelope);
        let (decision, reason) = hook(&desk, "git status");
        assert!(decision == "deny" && reason.contains("not verified"), "{why}: {reason}");
    }
    // A higher sequence, and then the lower one again.
    desk.put(&file, &first);
    assert!(desk.sign("a.pem", &["--initial"]).exits(0).out.contains("sequence 2"));
    let second = desk.get(&file);
    assert_eq!(hook(&desk, "git status").0, "allow");
    desk.put(&file, &first);
    denied(&desk, "sequence 1 is lower than 2");
    desk.put(&file, &second);
    assert_eq!(hook(&desk, "git status").0, "allow");

    // Another key, pinned by another trust file only.
    let made = polctl(&["keys", "generate", &desk.path("b.pem")]).exits(0).out;
    let public = PublicKey::from_base64(made.lines().next().unwrap().strip_prefix("public ").unwrap()).unwrap();
    let other = Trust::first(
        "fleet-test",
        polctl::sign::PinnedKey {
            signer: "other".into(),
            public,
            roles: [Role::Release].into(),
            not_before: None,
            not_after: None,
        },
    )
    .unwrap();
    desk.put(&file, signed_anew(&desk, "b.pem", &other, |set| set.sequence = 3));
    denied(&desk, "does not pin");
    // A key that was dropped, and a trust file that is gone.
    desk.put(&file, &second);
    let old = desk.get("trust.json");
    desk.put("trust.json", other.to_bytes());
    denied(&desk, "does not pin");
    std::fs::remove_file(desk.path("trust.json")).unwrap();
    denied(&desk, "trust file");
    desk.put("trust.json", old);
    std::fs::write(desk.path("hook-state.json"), "").unwrap();
    denied(&desk, "");
    std::fs::remove_file(desk.path("hook-state.json")).unwrap();
    assert_eq!(hook(&desk, "git status").0, "allow");
}

/// A signature over files does not make another set's bundle theirs.
#[test]
fn the_hook_denies_a_bundle_of_another_policy() {
    let desk = guarded();
    let bundle = desk.get("policy/polctl.bundle");
    desk.put("policy/CLAUDE_CMDS.md", narrower());
    compile_bundle(&desk);
    desk.sign("a.pem", &["--initial"]).exits(0);
    assert_eq!(hook(&desk, "git log").0, "ask");
    // Somebody with the key and another program signs the old bundle with the new files.
    desk.put("policy/polctl.bundle", &bundle);
    let trust = Trust::parse(&desk.get("trust.json")).unwrap();
    let envelope = signed_anew(&desk, "a.pem", &trust, |set| {
        set.sequence = 3;
        let entry = set.files.iter_mut().find(|file| file.name == "polctl.bundle").unwrap();
        *entry = polctl::sign::FileEntry::of("polctl.bundle", &bundle);
    });
    desk.put(&format!("policy/{ENVELOPE}"), envelope);
    desk.verify(&["--enforce"]).exits(0);
    let (decision, reason) = hook(&desk, "git status");
    assert!(decision == "deny" && reason.contains("the bundle is of another policy"), "{reason}");
}

/// Another version of polctl may compile the same files to another policy, which nobody checked.
#[test]
fn what_compiles_to_another_policy_is_not_handed_on() {
    let desk = guarded();
    desk.verify(&["--enforce", "--emit", "-"]).exits(0);
    let trust = Trust::parse(&desk.get("trust.json")).unwrap();
    let other = Digest::of(b"compiled by another version");
    desk.put(
        &format!("policy/{ENVELOPE}"),
        signed_anew(&desk, "a.pem", &trust, |set| {
            set.sequence = 2;
            set.policy_id = other;
        }),
    );
    desk.verify(&["--enforce", "--expect", &other.to_string()]).exits(0);
    for to in ["-".to_owned(), desk.path("out")] {
        let run = desk.verify(&["--enforce", "--emit", &to]).exits(2);
        assert!(run.err.contains(&other.to_string()) && run.err.contains("sign the set again"), "{}", run.err);
        assert_eq!(run.out, "");
    }
    assert!(!Path::new(&desk.path("out")).exists());
    assert!(hook(&desk, "git status").1.contains("the bundle is of another policy"));
}

// --- The fixtures.

/// The good set of `fixtures/sign` is a policy.
#[test]
fn the_good_fixture_is_a_policy() {
    let policy = sign_common::repository().join("fixtures/sign/good/policy");
    assert_eq!(
        polctl(&["check", "--initial", "-C", policy.to_str().unwrap()]).exits(0).out,
        "polctl check: ok: no errors\n"
    );
    let bench = Bench::new();
    assert!(bench.verify().is_ok());
}
