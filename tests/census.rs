//! `polctl census` on whole hosts: what each plan below `fixtures/hosts` is found to hold, what
//! no output may show, and what a hostile host cannot do.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod census_hosts;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use census_hosts::{Host, Run, fixture};

/// A host with the inventory of its fixture.
fn scanned(name: &str, more: &[&str]) -> (Host, Run) {
    let mut host = Host::of_plan(name);
    let inventory = std::fs::read_to_string(fixture(name).join("credentials.yaml")).unwrap();
    let inventory = host.inventory(&inventory);
    let args = [&["--inventory", inventory.to_str().unwrap(), "--format", "json"], more].concat();
    let run = host.census(&args);
    (host, run)
}

/// `expected` of a fixture: the exit code, then the findings.
fn expected(name: &str) -> (i32, Vec<String>) {
    let text = std::fs::read_to_string(fixture(name).join("expected")).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let code = lines.next().unwrap().strip_prefix("exit ").unwrap().parse().unwrap();
    (code, lines.map(str::to_owned).collect())
}

fn holds_what_is_expected(name: &str, more: &[&str]) -> (Host, Run) {
    let (host, run) = scanned(name, more);
    let (code, findings) = expected(name);
    assert_eq!(run.findings(), findings, "{}{}", run.out, run.err);
    assert_eq!(run.code, code, "{}", run.out);
    (host, run)
}

fn signs(run: &Run) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    run.json()["credentials"].as_array().unwrap().iter().map(|c| (text(&c["location"]), text(&c["sign"]))).collect()
}

fn sign_at(run: &Run, location: &str) -> Vec<String> {
    signs(run).into_iter().filter(|(at, _)| at == location).map(|(_, sign)| sign).collect()
}

#[test]
fn a_laptop_nobody_has_classified() {
    let (_, run) = holds_what_is_expected("laptop", &[]);
    assert_eq!(sign_at(&run, "/home/dev/.ssh/id_work"), ["encrypted"]);
    assert_eq!(sign_at(&run, "/home/dev/.ssh/id_ed25519"), ["live"]);
    assert_eq!(sign_at(&run, "/home/dev/.docker/config.json"), ["delegated"]);
    let json = run.json();
    let key = json["credentials"].as_array().unwrap().iter().find(|c| c["location"] == "/home/dev/.ssh/id_ed25519");
    assert!(key.unwrap()["fingerprint"].as_str().unwrap().starts_with("SHA256:"));
    assert_eq!(key.unwrap()["mode"], "0600");
    // A line number by hand: the second profile of the file.
    let aws = json["findings"].as_array().unwrap().iter().filter(|f| f["location"] == "/home/dev/.aws/credentials");
    assert!(aws.clone().any(|f| f["message"].as_str().unwrap().contains("`prod`")), "{json}");
}

#[test]
fn a_runner_with_rows_of_every_state() {
    holds_what_is_expected("runner", &["--warn-days", "30"]);
}

#[test]
fn a_server_whose_rows_do_not_fit() {
    holds_what_is_expected("server", &[]);
}

#[test]
fn a_clean_gateway_needs_no_exemption() {
    let (_, run) = holds_what_is_expected("gateway", &["--require-empty-exemptions"]);
    assert_eq!(run.json()["verdict"], "pass");
}

#[test]
fn any_exemption_is_one_too_many_where_there_may_be_none() {
    let (_, run) = scanned("server", &["--require-empty-exemptions"]);
    let found = run.findings();
    assert!(found.iter().any(|f| f == "exemptions-not-empty /home/deploy/.netrc"), "{found:?}");
    assert!(!found.iter().any(|f| f.contains("exemptions-not-empty /root")), "{found:?}");
}

#[test]
fn links_of_an_image_stay_inside() {
    let mut host = Host::empty();
    // A file of the machine that mounts the image, where the links of the image would lead.
    let outside = host.dir.path().join("outside");
    let text = host.filled("[default]\naws_secret_access_key = {{secret outside}}\n");
    std::fs::write(&outside, text).unwrap();
    let plan = std::fs::read_to_string(fixture("image").join("plan")).unwrap();
    let plan = plan.replace("@outside", outside.to_str().unwrap());
    host.plan(&plan);
    let run = host.census(&["--format", "json"]);
    let (code, findings) = expected("image");
    assert_eq!((run.code, run.findings()), (code, findings), "{}", run.out);
}

#[test]
fn a_hostile_host_is_scanned_to_its_end() {
    let mut host = Host::of_plan("hostile");
    let many = if std::env::var("POLCTL_NIGHTLY").is_ok_and(|value| value == "1") { 200_000 } else { 4_000 };
    host.plan(&format!("many /home/dev/many {many}"));
    let run = host.census(&["--format", "json"]);
    let (code, findings) = expected("hostile");
    assert_eq!((run.code, run.findings()), (code, findings), "{}", run.out);
    assert!(run.json()["looked"]["files"].as_u64().unwrap() > many);
    let human = host.census(&[]);
    assert!(!human.out.contains('\u{1b}'), "an escape of a file name reached the terminal");
    assert!(human.out.contains("/home/dev/odd/a\\x0ab\\x1b\\x5b31m/k\\x2ay"), "{}", human.out);
}

/// Runs as a user without rights, also where the tests run as root.
fn unprivileged(host: &Host, args: &[&str]) -> Run {
    let root = rustix::process::geteuid().is_root();
    let polctl = host.dir.path().join("polctl");
    std::fs::copy(env!("CARGO_BIN_EXE_polctl"), &polctl).unwrap();
    std::fs::set_permissions(&polctl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&polctl);
    command.args(["census", "--root", host.root().to_str().unwrap()]).args(args).current_dir("/");
    if root {
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        std::os::unix::process::CommandExt::gid(&mut command, 65_534);
    }
    Run::of(&command.output().unwrap(), host)
}

#[test]
fn what_cannot_be_read_is_told_and_never_a_pass() {
    let mut host = Host::empty();
    host.plan("dir 0755 /home/dev\ndir 0000 /home/dev/closed\nfile 0000 /home/dev/.netrc\nfile 0644 /home/dev/a\n");
    let run = unprivileged(&host, &["--format", "json"]);
    assert_eq!((run.code, run.findings()), (3, vec!["census-incomplete".to_owned()]), "{}{}", run.out, run.err);
    let json = run.json();
    let unreadable: Vec<&str> =
        json["unreadable"].as_array().unwrap().iter().map(|u| u["location"].as_str().unwrap()).collect();
    assert!(unreadable.contains(&"/home/dev/closed") && unreadable.contains(&"/home/dev/.netrc"), "{json}");
    let skipped = unprivileged(&host, &["--skip", "/home/dev/closed"]);
    assert!(skipped.out.contains("/home/dev/closed: left out by `--skip`"), "{}", skipped.out);
    host.plan("dir 0755 /home/dev/closed");
}

/// An ACL that lets one user read, as the kernel stores it.
fn let_in(path: &Path, uid: u32) {
    let mut bytes = vec![2, 0, 0, 0];
    for (tag, permissions, id) in
        [(1u16, 6u16, u32::MAX), (2, 4, uid), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)]
    {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    rustix::fs::setxattr(path, "system.posix_acl_access", &bytes, rustix::fs::XattrFlags::empty())
        .unwrap_or_else(|e| panic!("{e}: the tests need a temporary directory on a file system with ACLs; set TMPDIR"));
}

#[test]
fn the_view_of_one_user_is_computed_from_mode_groups_and_acl() {
    let mut host = Host::empty();
    host.plan(
        "file 0644 /etc/passwd <<\nroot:x:0:0::/root:/bin/sh\ndev:x:{{uid}}:7:::/bin/sh\nagent:x:4242:4242::/home/agent:/bin/sh\n.\n\
         file 0644 /etc/group <<\nshared:x:76:agent\nother:x:77:\n.\n\
         dir 0755 /home/agent\ndir 0711 /home/dev\ndir 0700 /home/private\n\
         key 0600 /home/dev/owner\nkey 0604 /home/dev/everyone\nkey 0600 /home/dev/by-acl\nkey 0604 /home/private/hidden\n\
         dir 0755 /home/dev/open\nkey 0604 /home/dev/open/everyone\nkey 0600 /home/dev/open/owner\nkey 0600 /home/dev/open/by-acl\n",
    );
    let_in(&host.at("/home/dev/open/by-acl"), 4242);
    let locations = |run: &Run| signs(run).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    let run = host.census(&["--as", "agent", "--format", "json"]);
    // `/home/dev` can be searched and not listed: what lies in it has no known name.
    assert_eq!(locations(&run), Vec::<String>::new(), "{}", run.out);
    host.plan("dir 0755 /home/dev");
    let run = host.census(&["--as", "agent", "--format", "json"]);
    assert_eq!(locations(&run), ["/home/dev/everyone", "/home/dev/open/by-acl", "/home/dev/open/everyone"]);
    assert!(run.json()["looked"]["closed"].as_u64().unwrap() >= 1, "the closed home is counted");
    assert_eq!(run.json()["view"], "agent");
    let by_number = host.census(&["--as", "4242", "--format", "json"]);
    assert_eq!(locations(&by_number), locations(&run));
    let all = host.census(&["--format", "json"]);
    assert_eq!(locations(&all).len(), 7);
    let json = all.json();
    let acl =
        json["credentials"].as_array().unwrap().iter().find(|c| c["location"] == "/home/dev/open/by-acl").unwrap();
    assert!(acl["readers"].as_array().unwrap().iter().any(|r| r == "user agent (ACL)"), "{acl}");
    let nobody = host.census(&["--as", "nobody-here"]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.err.contains("the host has no user `nobody-here`"), "{}", nobody.err);
}

#[test]
fn no_output_shows_a_secret() {
    let mut host = Host::of_plan("laptop");
    assert!(host.secrets.len() > 12, "{:?}", host.secrets.keys());
    let beside = |name: &str| host.dir.path().join(name).display().to_string();
    let (metrics, heartbeat, inventory) = (beside("m.prom"), beside("beat"), beside("new.yaml"));
    let files = ["--metrics", &metrics, "--heartbeat", &heartbeat, "--inventory", &inventory, "--adopt"];
    // Standard output and error are searched by every run.
    assert_eq!(host.census(&files).code, 1);
    assert_eq!(host.census(&["--format", "json", "--inventory", &inventory]).code, 1);
    for file in [&metrics, &heartbeat, &inventory] {
        host.assert_no_secret(file, &std::fs::read_to_string(file).unwrap());
    }
    // An inventory into which somebody wrote a value is refused, and not quoted.
    let text = host.filled("polctl: v1\ncredentials: []\n# it is {{token netrc}}\n");
    std::fs::write(&inventory, text).unwrap();
    let run = host.census(&["--inventory", &inventory]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("holds what looks like a secret"), "{}", run.err);
    // Words around the values were there to be found.
    let all = host.census(&[]).out;
    assert!(all.contains("/home/dev/.netrc") && all.contains("/home/dev/.aws/credentials"), "{all}");
}

#[test]
fn what_is_adopted_fails_until_somebody_decides() {
    let host = Host::of_plan("laptop");
    let inventory = host.dir.path().join("credentials.yaml");
    let path = inventory.to_str().unwrap();
    let first = host.census(&["--inventory", path, "--adopt"]);
    assert_eq!(first.code, 1);
    assert!(first.err.contains("rows added"), "{}", first.err);
    let text = std::fs::read_to_string(&inventory).unwrap();
    let still = host.census(&["--inventory", path, "--format", "json"]);
    let unclassified = |run: &Run| run.findings().iter().filter(|f| f.starts_with("credential-unclassified")).count();
    assert_eq!((still.code, unclassified(&still)), (1, unclassified(&host.census(&["--format", "json"]))));
    let again = host.census(&["--inventory", path, "--adopt"]);
    assert!(again.err.contains("nothing to adopt"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(&inventory).unwrap(), text);
    // A person decides.
    let exempt = "state: explicitly-exempt\n    reason: a test\n    owner: tests\n    expires: 2999-12-31";
    std::fs::write(&inventory, text.replace("state: unclassified", exempt)).unwrap();
    let decided = host.census(&["--inventory", path, "--format", "json"]);
    assert_eq!(unclassified(&decided), 0, "{}", decided.out);
    // Something new beside what is exempt is not covered.
    let netrc = std::fs::read_to_string(host.at("/home/dev/.netrc")).unwrap();
    std::fs::write(host.at("/home/dev/.netrc"), netrc + "machine new.example login a password b4Zk0q81\n").unwrap();
    std::fs::remove_file(host.at("/home/dev/.ssh/id_ed25519")).unwrap();
    std::fs::remove_file(host.at("/home/dev/.ssh/id_ed25519.pub")).unwrap();
    let mut host = host;
    host.key("/home/dev/.ssh/id_ed25519", "0600", &[]);
    let changed = host.census(&["--inventory", path, "--format", "json"]);
    let found = changed.findings();
    for wanted in [
        "exemption-exceeded /home/dev/.netrc",
        "exemption-exceeded /home/dev/.ssh/id_ed25519",
        "credential-stale /home/dev/.ssh/id_ed25519",
    ] {
        assert!(found.iter().any(|f| f == wanted), "{wanted}: {found:?}");
    }
    // Rows for these two are added behind the others, and comments stay.
    let commented = std::fs::read_to_string(&inventory).unwrap() + "# the end\n";
    std::fs::write(&inventory, commented).unwrap();
    let added = host.census(&["--inventory", path, "--adopt"]);
    assert!(added.err.contains("2 rows added"), "{}", added.err);
    assert!(std::fs::read_to_string(&inventory).unwrap().ends_with("state: unclassified\n# the end\n"));
}

#[test]
fn an_inventory_that_cannot_be_used_is_wrong_usage() {
    let mut host = Host::empty();
    host.plan("dir 0755 /home/dev");
    for (text, message) in [
        (
            "polctl: v1\ncredentials:\n  - { location: /a, kind: nothing, state: unclassified }\n",
            "`nothing` is no kind",
        ),
        ("polctl: v1\ncredentials:\n  - { location: /a, kind: cloud }\n", "no `state`"),
        (
            "polctl: v1\ncredentials:\n  - { location: /a, kind: cloud, hosts: [a], state: unclassified }\n",
            "give `--host NAME`",
        ),
    ] {
        let path = host.inventory(text);
        let run = host.census(&["--inventory", path.to_str().unwrap()]);
        assert_eq!(run.code, 2, "{text}: {}{}", run.out, run.err);
        assert!((run.out + &run.err).contains(message), "{text}");
    }
    let run = host.census(&["--inventory", "/no/such/file"]);
    assert_eq!((run.code, run.err.contains("cannot read the inventory")), (2, true), "{}", run.err);
    assert_eq!(host.census(&["--skip", "relative"]).code, 2);
    assert_eq!(host.census(&["--also", "/none", "--format", "json"]).code, 3, "what was asked for is not there");
}

#[test]
fn figures_and_heartbeat_are_written_whole() {
    let (host, run) = scanned("runner", &[]);
    let beside = |name: &str| host.dir.path().join(name).display().to_string();
    let (metrics, heartbeat) = (beside("polctl.prom"), beside("beat.json"));
    std::fs::write(&metrics, "old").unwrap();
    let inventory = beside("credentials.yaml");
    let again = host.census(&["--inventory", &inventory, "--metrics", &metrics, "--heartbeat", &heartbeat]);
    assert_eq!(again.code, run.code);
    let text = std::fs::read_to_string(&metrics).unwrap();
    // The text format: a line is a comment or `name{labels} value`.
    for line in text.lines().filter(|line| !line.starts_with("# HELP ") && !line.starts_with("# TYPE ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("polctl_census_") && value.parse::<f64>().is_ok(), "{line}");
        assert!(!line.contains('/'), "a path in a metric: {line}");
    }
    assert!(text.contains(&format!("polctl_census_exit_code {}\n", run.code)));
    assert!(text.contains("polctl_census_first_expiry_timestamp_seconds "));
    assert_eq!(std::fs::metadata(&metrics).unwrap().permissions().mode() & 0o777, 0o644);
    let beat: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&heartbeat).unwrap()).unwrap();
    assert_eq!(beat["exit_code"], run.code);
    let nowhere = host.census(&["--metrics", "/no/such/dir/m.prom"]);
    assert_eq!(nowhere.code, 2, "a figure that nobody gets is no pass");
}

#[test]
fn warnings_fail_when_asked() {
    let mut host = Host::empty();
    host.plan("file 0600 /home/dev/.netrc <<\nmachine a.example login u password {{secret a}}\n.\n");
    let row = |days: i64, host: &mut Host, kind: &str| {
        host.inventory(&format!(
            "polctl: v1\ncredentials:\n  - {{ location: /home/dev/.netrc, kind: {kind}, labels: [a.example], state: explicitly-exempt, reason: a, owner: b, expires: {{{{day {days}}}}} }}\n"
        ))
    };
    let kind = host.census(&["--format", "json"]).json()["credentials"][0]["kind"].as_str().unwrap().to_owned();
    let label = host.census(&["--format", "json"]).json()["credentials"][0]["label"].as_str().unwrap().to_owned();
    assert_eq!(label, "a.example");
    for (days, args, code) in [
        (20, &[][..], 0),
        (20, &["--warn-days", "25"], 0),
        (20, &["--warn-days", "25", "--deny", "warnings"], 1),
        (0, &[], 0),
        (-1, &[], 1),
    ] {
        let path = row(days, &mut host, &kind);
        let run = host.census(&[&["--inventory", path.to_str().unwrap()], args].concat());
        assert_eq!(run.code, code, "{days} {args:?}: {}", run.out);
    }
}

#[test]
fn places_that_start_up_files_move_are_looked_at() {
    let mut host = Host::empty();
    host.plan(
        "file 0644 /home/dev/.bashrc <<\nexport AWS_SHARED_CREDENTIALS_FILE=$HOME/elsewhere/keys\nexport NETRC=$(pwd)/n\n.\n\
         file 0600 /home/dev/elsewhere/keys <<\n[moved]\naws_access_key_id = x\naws_secret_access_key = {{secret aws}}\n.\n",
    );
    let run = host.census(&["--format", "json"]);
    assert_eq!(run.findings(), ["credential-unclassified /home/dev/elsewhere/keys"], "{}", run.out);
    let json = run.json();
    assert!(json["skipped"][0]["why"].as_str().unwrap().contains("`NETRC`"), "{json}");
}
