//! The credential inventory as a part of the policy: what `check --base` says of its changes, and
//! what it says of one that cannot be read.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::path::Path;
use std::process::Command;

/// Two rows, one of them with everything that has an order.
const ROWS: &str = "polctl: v1
credentials:
  - location: /home/dev/.netrc
    kind: source-control
    labels: [a.example, b.example]
    hosts: [web-1, web-2]
    state: explicitly-exempt
    reason: old mirrors
    owner: platform
    expires: 2027-01-31
  - location: /home/dev/.ssh/id_ed25519
    kind: private-key
    fingerprint: SHA256:0123456789012345678901234567890123456789012
    state: explicitly-exempt
    reason: deploys
    owner: platform
    expires: 2027-01-31
  - location: /home/dev/history
    kind: gathered
    count: 2
    state: moved-behind-gateway
";

fn set(dir: &Path, inventory: Option<&str>) {
    std::fs::create_dir_all(dir).unwrap();
    let names = if inventory.is_some() { "census: { inventory: credentials.yaml }\n" } else { "" };
    std::fs::write(dir.join("polctl.yaml"), format!("polctl: v1\nset: demo\npolicies: [map.md]\n{names}")).unwrap();
    let map = "---\npolctl: v1\nsurface: commands\n---\n## Tier 0\n- `ls`\n";
    std::fs::write(dir.join("map.md"), map).unwrap();
    if let Some(text) = inventory {
        std::fs::write(dir.join("credentials.yaml"), text).unwrap();
    }
}

/// Exit code, and `code: message` of each finding about the inventory.
fn check(old: Option<&str>, new: Option<&str>) -> (i32, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    set(&dir.path().join("old"), old);
    set(&dir.path().join("new"), new);
    let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
        .args(["check", "--dir", "./new", "--base", "./old", "--no-cache", "--format", "json"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings = json["findings"].as_array().unwrap();
    let told = findings.iter().map(|f| format!("{}: {}", text(f, "code"), text(f, "message"))).collect();
    (output.status.code().unwrap(), told)
}

/// What a change of the rows is, in one direction and back.
fn changes(old: &str, new: &str, wanted: &[&str], back: &[&str]) {
    for (from, to, wanted) in [(old, new, wanted), (new, old, back)] {
        let (code, mut told) = check(Some(from), Some(to));
        told.sort();
        assert_eq!(told, wanted, "{to}");
        let widens = wanted.iter().any(|message| message.starts_with("config-widening"));
        assert_eq!(code, i32::from(widens), "{told:?}");
    }
}

#[test]
fn what_lets_more_stay_is_a_widening() {
    let with = |from: &str, to: &str| {
        assert!(ROWS.contains(from), "{from}");
        ROWS.replacen(from, to, 1)
    };
    // Longer.
    changes(
        ROWS,
        &with(
            "owner: platform\n    expires: 2027-01-31\n  - location: /home/dev/.ssh",
            "owner: platform\n    expires: 2027-02-01\n  - location: /home/dev/.ssh",
        ),
        &[
            "config-widening: the source-control `a.example` in `/home/dev/.netrc` may stay on `web-1` until 2027-02-01, and before until 2027-01-31",
            "config-widening: the source-control `a.example` in `/home/dev/.netrc` may stay on `web-2` until 2027-02-01, and before until 2027-01-31",
            "config-widening: the source-control `b.example` in `/home/dev/.netrc` may stay on `web-1` until 2027-02-01, and before until 2027-01-31",
            "config-widening: the source-control `b.example` in `/home/dev/.netrc` may stay on `web-2` until 2027-02-01, and before until 2027-01-31",
        ],
        &[
            "narrowing: the exemption of the source-control `a.example` in `/home/dev/.netrc` on `web-1` ends earlier or covers less",
            "narrowing: the exemption of the source-control `a.example` in `/home/dev/.netrc` on `web-2` ends earlier or covers less",
            "narrowing: the exemption of the source-control `b.example` in `/home/dev/.netrc` on `web-1` ends earlier or covers less",
            "narrowing: the exemption of the source-control `b.example` in `/home/dev/.netrc` on `web-2` ends earlier or covers less",
        ],
    );
    // Another host.
    changes(
        &with("[a.example, b.example]", "[a.example]").replace("[web-1, web-2]", "[web-1]"),
        &with("[a.example, b.example]", "[a.example]"),
        &["config-widening: the source-control `a.example` in `/home/dev/.netrc` may stay on `web-2` until 2027-01-31"],
        &["narrowing: the exemption of the source-control `a.example` in `/home/dev/.netrc` on `web-2` is gone"],
    );
    // Every host.
    let one = with("[a.example, b.example]", "[a.example]");
    changes(
        &one,
        &one.replace("    hosts: [web-1, web-2]\n", ""),
        &[
            "config-widening: the source-control `a.example` in `/home/dev/.netrc` may stay on every host until 2027-01-31",
        ],
        &["narrowing: the exemption of the source-control `a.example` in `/home/dev/.netrc` on every host is gone"],
    );
    // Another key under the same name.
    changes(
        ROWS,
        &with("SHA256:0", "SHA256:1"),
        &[
            "config-widening: the private-key SHA256:1123456789012345678901234567890123456789012 in `/home/dev/.ssh/id_ed25519` may stay on every host until 2027-01-31",
            "narrowing: the exemption of the private-key SHA256:0123456789012345678901234567890123456789012 in `/home/dev/.ssh/id_ed25519` on every host is gone",
        ],
        &[
            "config-widening: the private-key SHA256:0123456789012345678901234567890123456789012 in `/home/dev/.ssh/id_ed25519` may stay on every host until 2027-01-31",
            "narrowing: the exemption of the private-key SHA256:1123456789012345678901234567890123456789012 in `/home/dev/.ssh/id_ed25519` on every host is gone",
        ],
    );
    // From moved to exempt.
    let exempt = "state: explicitly-exempt\n    reason: a\n    owner: b\n    expires: 2027-01-31";
    let moved = with("state: moved-behind-gateway", exempt);
    changes(
        ROWS,
        &moved,
        &["config-widening: the gathered in `/home/dev/history` may stay on every host until 2027-01-31"],
        &["narrowing: the exemption of the gathered in `/home/dev/history` on every host is gone"],
    );
    // More of them.
    changes(
        &moved,
        &moved.replace("count: 2", "count: 3"),
        &[
            "config-widening: the gathered in `/home/dev/history`: 3 of them may stay on every host until 2027-01-31, and 2 before",
        ],
        &["narrowing: the exemption of the gathered in `/home/dev/history` on every host ends earlier or covers less"],
    );
    // The break-glass row has no end.
    let glass = format!("{ROWS}break_glass: {{ location: /root/k, kind: private-key, reason: a, owner: operator }}\n");
    changes(
        ROWS,
        &glass,
        &["config-widening: the private-key in `/root/k` may stay on every host until it is removed (break glass)"],
        &["narrowing: the exemption of the private-key in `/root/k` on every host is gone"],
    );
}

#[test]
fn what_lets_nothing_more_stay_is_no_finding() {
    let words =
        ROWS.replace("reason: deploys", "reason: deploys to the old hosts").replace("owner: platform", "owner: ops");
    changes(ROWS, &words, &[], &[]);
    let moved = ROWS.replace("/home/dev/history", "/home/dev/other");
    changes(ROWS, &moved, &[], &[]);
    // The same in other rows.
    let one = ROWS.replace("labels: [a.example, b.example]", "labels: [a.example]");
    let row = "  - { location: /home/dev/.netrc, kind: source-control, labels: [b.example], hosts: [web-1, web-2], state: explicitly-exempt, reason: x, owner: y, expires: 2027-01-31 }\n";
    changes(ROWS, &format!("{one}{row}"), &[], &[]);
}

#[test]
fn an_inventory_that_is_new_is_one_widening_for_each_exemption() {
    let (code, told) = check(None, Some(ROWS));
    assert_eq!((code, told.len()), (1, 5), "{told:?}");
    let (code, told) = check(Some(ROWS), None);
    assert_eq!(code, 0, "{told:?}");
    assert!(told.iter().all(|message| message.starts_with("narrowing")), "{told:?}");
}

#[test]
fn an_inventory_that_cannot_be_read_leaves_no_verdict() {
    for (from, to, message) in [
        ("expires: 2027-01-31", "expires: never", "`never` is no day"),
        ("kind: gathered", "kind: gatherd", "`gatherd` is no kind of credential"),
        ("reason: deploys", "reasons: deploys", "`reasons` is no key"),
    ] {
        let (code, told) = check(Some(ROWS), Some(&ROWS.replace(from, to)));
        assert_eq!(code, 2, "{told:?}");
        assert!(told.iter().any(|told| told.contains(message)), "{told:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    set(dir.path(), Some(ROWS));
    std::fs::remove_file(dir.path().join("credentials.yaml")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_polctl"))
        .args(["check", "--initial", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
}
