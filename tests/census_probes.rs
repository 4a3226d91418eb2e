//! The probes of `polctl census`: every place of the table has cases, every case is judged as it
//! says, nothing panics, and nothing that was found comes out again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod census_common;

use std::collections::BTreeSet;

use census_common::{Case, Maker, NOW, cases, checked_token, jwt, run};
use polctl::census::probe::{
    Kind, MAX_BYTES, MAX_MATERIALS, Material, Probe, Sign, Third, check, locations_page, probes, read, sniff,
};
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// All cases; keys are made once for all tests.
fn all_cases() -> &'static [Case] {
    static CASES: std::sync::LazyLock<Vec<Case>> = std::sync::LazyLock::new(|| cases(&mut Maker::new()));
    &CASES
}

fn probe(name: &str) -> &'static Probe {
    probes().iter().find(|probe| probe.name == name).unwrap_or_else(|| panic!("no probe `{name}`"))
}

fn judge(name: &str, bytes: &[u8]) -> Vec<Material> {
    read(probe(name).format, bytes, NOW)
}

#[test]
fn the_table_is_sound() {
    assert_eq!(check(), &[], "probes.table");
    let places: usize = probes().iter().map(|probe| probe.paths.len()).sum();
    assert!(probes().len() >= 120 && places >= 400, "{} probes, {places} places", probes().len());
}

/// A positive, a negative, and the third case, unless the table says that there is none.
#[test]
fn every_probe_has_its_cases() {
    let all = all_cases();
    let known: BTreeSet<&str> = probes().iter().map(|probe| probe.name.as_str()).collect();
    let stray: Vec<&Case> = all.iter().filter(|case| !known.contains(case.probe.as_str())).collect();
    assert!(stray.is_empty(), "cases of no probe: {:?}", stray.iter().map(|case| &case.probe).collect::<Vec<_>>());
    let mut missing = Vec::new();
    for probe in probes() {
        let has = |sign: &str| all.iter().any(|case| case.probe == probe.name && case.sign == sign);
        let mut need = |sign: &str, there: bool| {
            if !there {
                missing.push(format!("{} lacks {sign}", probe.name));
            }
        };
        need("none", has("none"));
        match &probe.third {
            // What is sealed as a whole has no usable form; then the sealed one is its positive case.
            Third::Sign(third) => {
                need(third, has(third));
                need("live", has("live") || third == "encrypted");
            }
            Third::None(_) => need("live", has("live")),
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

fn fits(expected: &str, found: &[Material]) -> bool {
    let live = found.iter().any(|material| material.sign.counts_as_live());
    match expected {
        "live" => live,
        "none" => found.iter().all(|material| material.sign == Sign::Empty),
        other => !live && found.iter().any(|material| material.sign.name() == other),
    }
}

#[test]
fn every_case_is_judged_as_it_says() {
    let mut wrong = Vec::new();
    for case in all_cases() {
        let probe = probe(&case.probe);
        let found = read(probe.format, &case.bytes, NOW);
        if !fits(&case.sign, &found) {
            wrong.push(format!("line {}: {} is not {}: {found:?}", case.line, case.probe, case.sign));
        }
        // A case that is meant to be usable must not pass as one that only cannot be read.
        let spoilt = found.iter().any(|material| matches!(material.sign, Sign::Unreadable { .. }));
        let on_purpose = ["SQLite format 3\0"].iter().any(|text| case.bytes.starts_with(text.as_bytes()))
            || probe.format.name() == "store";
        if spoilt && !on_purpose {
            wrong.push(format!("line {}: {} cannot be read: {found:?}", case.line, case.probe));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pieces of a secret that must not come out: all of it and its halves.
fn pieces(secret: &str) -> [&str; 3] {
    let (head, tail) = secret.split_at(secret.len() / 2);
    [secret, head, tail]
}

fn leaks(secrets: &[String], found: &[Material]) -> Option<String> {
    let shown = format!("{found:?}");
    secrets.iter().flat_map(|secret| pieces(secret)).find(|piece| shown.contains(piece)).map(|_| shown.clone())
}

#[test]
fn no_secret_comes_out() {
    let all = all_cases();
    let secrets: usize = all.iter().map(|case| case.secrets.len()).sum();
    assert!(secrets > 200, "{secrets}");
    for case in all {
        // Each file goes through each reader: a wrong one must not tell either.
        let mut formats = BTreeSet::new();
        for other in probes().iter().filter(|other| other.name == case.probe || formats.insert(other.format.name())) {
            let found = read(other.format, &case.bytes, NOW);
            assert_eq!(leaks(&case.secrets, &found), None, "{} read as {}", case.probe, other.format.name());
        }
        assert_eq!(leaks(&case.secrets, &sniff(&case.bytes, NOW)), None, "{} by content", case.probe);
    }
}

/// One deterministic change: cut, drop, double, replace or move a stretch.
fn mutated(bytes: &[u8], how: (u8, u16, u16, u8)) -> Vec<u8> {
    let (kind, from, length, byte) = how;
    let mut out = bytes.to_vec();
    let from = usize::from(from) % (out.len() + 1);
    let end = (from + usize::from(length) % 24).min(out.len());
    match kind % 5 {
        0 => out.truncate(from),
        1 => drop(out.drain(from..end)),
        2 => {
            let stretch = out[from..end].to_vec();
            out.splice(from..from, stretch);
        }
        3 => out[from..end].fill(byte),
        _ => out.insert(from, byte),
    }
    out
}

/// Mutated cases: no panic, no secret, and an answer of bounded size.
#[test]
fn spoilt_cases_neither_panic_nor_tell() {
    let all = all_cases();
    let config =
        Config { cases: rounds(3_000), rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..Config::default() };
    let pick = (0..all.len(), proptest::collection::vec(proptest::arbitrary::any::<(u8, u16, u16, u8)>(), 1..4));
    TestRunner::new(config)
        .run(&pick, |(at, changes)| {
            let case = &all[at];
            let bytes = changes.iter().fold(case.bytes.clone(), |bytes, how| mutated(&bytes, *how));
            let found = judge(&case.probe, &bytes);
            assert!(found.len() <= MAX_MATERIALS + 1);
            let shown = format!("{found:?}{:?}", sniff(&bytes, NOW));
            assert!(
                !case.secrets.iter().any(|secret| shown.contains(secret.as_str())),
                "{} tells: {shown}",
                case.probe
            );
            Ok(())
        })
        .unwrap();
}

/// Random bytes, alone and behind the beginnings of every format, through every reader.
#[test]
fn random_bytes_do_not_panic() {
    let mut formats = BTreeSet::new();
    let each: Vec<&Probe> = probes().iter().filter(|probe| formats.insert(probe.format.name())).collect();
    assert!(each.len() >= 20, "{formats:?}");
    let heads: Vec<Vec<u8>> = all_cases().iter().map(|case| case.bytes.iter().take(40).copied().collect()).collect();
    let config =
        Config { cases: rounds(800), rng_seed: RngSeed::Fixed(12), failure_persistence: None, ..Config::default() };
    let input =
        (0..heads.len(), proptest::bool::ANY, proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..300));
    TestRunner::new(config)
        .run(&input, |(at, headed, tail)| {
            let bytes = [if headed { heads[at].as_slice() } else { &[] }, &tail].concat();
            for probe in &each {
                let _ = read(probe.format, &bytes, NOW);
            }
            let _ = sniff(&bytes, NOW);
            Ok(())
        })
        .unwrap();
}

fn rounds(quick: u32) -> u32 {
    if std::env::var_os("POLCTL_NIGHTLY").is_some() { quick * 100 } else { quick }
}

#[test]
fn deep_and_large_files_are_refused_or_read() {
    let unreadable = |name: &str, bytes: &[u8]| {
        let found = judge(name, bytes);
        assert!(
            matches!(found.as_slice(), [Material { sign: Sign::Unreadable { .. }, .. }]),
            "{name}: {}",
            found.len()
        );
    };
    unreadable("docker-config", "[".repeat(200_000).as_bytes());
    unreadable("docker-config", "{\"a\":".repeat(200_000).as_bytes());
    unreadable("kubeconfig", "[".repeat(200_000).as_bytes());
    unreadable("kubeconfig", (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>().as_bytes());
    unreadable("cargo-credentials", format!("a = {}", "[".repeat(200_000)).as_bytes());
    unreadable("cargo-credentials", format!("a{} = 1", ".a".repeat(100_000)).as_bytes());
    unreadable("maven-settings", "<a>".repeat(200_000).as_bytes());
    unreadable("maven-settings", b"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>");
    unreadable("docker-config", &vec![b' ' + 1; MAX_BYTES + 1]);
    unreadable("gcloud-adc", b"\xff\xfe\x00\xd8");
    let bomb: String = (1..40).map(|n| format!("a{n}: &a{n} [*a{0},*a{0}]\n", n - 1)).collect();
    unreadable("kubeconfig", format!("a0: &a0 [x]\n{bomb}").as_bytes());
}

#[test]
fn many_credentials_are_not_cut_in_silence() {
    let lines: String = (0..=MAX_MATERIALS).map(|n| format!("https://u:pw{n}@h{n}.example.com\n")).collect();
    let found = judge("git-credentials", lines.as_bytes());
    assert_eq!(found.len(), MAX_MATERIALS + 1);
    assert!(matches!(found.last().unwrap().sign, Sign::Unreadable { .. }));
}

#[test]
fn labels_and_lines_tell_credentials_apart() {
    let told = |name: &str, text: &str| -> Vec<(Option<usize>, Option<String>)> {
        judge(name, text.as_bytes()).into_iter().map(|material| (material.line, material.label)).collect()
    };
    let some = |line: usize, label: &str| (Some(line), Some(label.to_owned()));
    let aws = "[default]\naws_access_key_id = A\naws_secret_access_key = x1\n\n[ops]\naws_secret_access_key = x2\n";
    assert_eq!(told("aws-credentials", aws), [some(3, "default"), some(6, "ops")]);
    let netrc = "machine a.example.com\n  login u\n  password p\nmachine b.example.com login u password q\n";
    assert_eq!(told("netrc", netrc), [some(3, "a.example.com"), some(4, "b.example.com")]);
    let docker = "{\n \"auths\": {\n  \"a.example.com\": {\"auth\": \"YTpi\"},\n  \"b.example.com\": {\"auth\": \"YzpkZA==\"}\n }\n}";
    assert_eq!(told("docker-config", docker), [some(3, "auths/a.example.com"), some(4, "auths/b.example.com")]);
    let git = "https://u:p1@a.example.com\n\nhttps://u:p2@b.example.com\n";
    assert_eq!(told("git-credentials", git), [some(1, "a.example.com"), some(3, "b.example.com")]);
    let kube = "users:\n- name: admin\n  user:\n    token: abc\n- name: dev\n  user:\n    password: x\n";
    assert_eq!(told("kubeconfig", kube), [some(4, "users/admin/user"), some(7, "users/dev/user")]);
    let env = "A=1\nexport API_TOKEN=abc\nDB_PASSWORD='x y'\n";
    assert_eq!(told("dotenv", env), [some(2, "API_TOKEN"), some(3, "DB_PASSWORD")]);
    let xml = "<settings><servers>\n<server><id>a</id><password>x</password></server>\n<server><id>b</id><password>y</password></server>\n</servers></settings>";
    assert_eq!(
        told("maven-settings", xml),
        [some(2, "settings/servers/server:a"), some(3, "settings/servers/server:b")]
    );
    let toml = "[registries.a]\ntoken = \"x\"\n[registries.b]\ntoken = \"y\"\n";
    assert_eq!(told("cargo-credentials", toml), [some(2, "registries/a"), some(4, "registries/b")]);
}

/// Fingerprints are those that `ssh-keygen -l` prints, encrypted keys included.
#[test]
fn fingerprints_are_those_of_ssh_keygen() {
    let mut maker = Maker::new();
    for words in ["ssh-key plain", "ssh-key encrypted", "pem rsa-traditional", "pem ec", "pem pkcs8-rsa"] {
        let key = maker.make(words);
        let path = maker.dir().join("probe.key");
        std::fs::write(&path, &key).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let shown = String::from_utf8(run("ssh-keygen", &["-l", "-f", "probe.key"], maker.dir())).unwrap();
        let expected = shown.split(' ').nth(1).unwrap();
        let found = judge("ssh-other-file", &key);
        assert_eq!(found.len(), 1, "{words}: {found:?}");
        assert_eq!(found[0].fingerprint.as_deref(), Some(expected), "{words}");
    }
}

#[test]
fn key_stores_with_the_empty_password_are_live() {
    let mut maker = Maker::new();
    for (words, sign) in [("p12 empty", Sign::Live), ("p12 empty-sha1", Sign::Live), ("p12 password", Sign::Encrypted)]
    {
        assert_eq!(judge("key-store", &maker.make(words))[0].sign, sign, "{words}");
    }
}

#[test]
fn files_are_known_by_their_content() {
    let mut maker = Maker::new();
    let one = |bytes: &[u8]| -> Vec<(Kind, &'static str)> {
        sniff(bytes, NOW).iter().map(|material| (material.kind, material.sign.name())).collect()
    };
    for words in
        ["ssh-key plain", "pem rsa-traditional", "pem ec", "pem pkcs8", "putty none", "p12 empty", "openpgp plain"]
    {
        let expected: &[_] = if words == "openpgp plain" { &[] } else { &[(Kind::PrivateKey, "live")] };
        assert_eq!(one(&maker.make(words)), expected, "{words}");
    }
    assert_eq!(one(&maker.make("ssh-key encrypted")), [(Kind::PrivateKey, "encrypted")]);
    assert_eq!(one(&maker.make("ssh-sk")), [(Kind::PrivateKey, "hardware")]);
    for nothing in ["pem certificate", "ssh-public", "sqlite logins 2"] {
        assert_eq!(one(&maker.make(nothing)), [], "{nothing}");
    }
    // Text about keys is none.
    assert_eq!(one(b"if text.contains(\"-----BEGIN PRIVATE KEY-----\") { }"), []);
    assert_eq!(one(b"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n"), []);
    // A checksum that does not fit, a name without its secret, and a placeholder are no tokens.
    let token = checked_token("ghp", 3);
    assert_eq!(one(format!("x = {token};").as_bytes()), [(Kind::SourceControl, "live")]);
    assert_eq!(one(format!("x = {}", token.replace(&token[8..9], "-")).as_bytes()), []);
    let swapped: String = token
        .chars()
        .take(10)
        .chain(token.chars().skip(10).take(1).map(|c| if c == 'a' { 'b' } else { 'a' }))
        .chain(token.chars().skip(11))
        .collect();
    assert_eq!(one(swapped.as_bytes()), []);
    assert_eq!(one(checked_token("npm", 4).as_bytes()), [(Kind::Registry, "live")]);
    let (id, secret) = (format!("AKIA{}", "QRST2345UVWX6723"), &checked_token("ghp", 9)[4..]);
    assert_eq!(one(id.as_bytes()), []);
    assert_eq!(one(format!("{id} = {secret}abcd").as_bytes()), [(Kind::Cloud, "live")]);
    assert_eq!(one(jwt(Some(60)).as_bytes()), [(Kind::Service, "live")]);
    assert_eq!(one(jwt(Some(-60)).as_bytes()), [(Kind::Service, "expired")]);
    assert_eq!(one(jwt(None).as_bytes()), [(Kind::Service, "live")]);
    assert_eq!(one(b"eyJub3QiOiJhIHRva2VuIn0.x.y and more text than that"), []);
}

#[test]
fn variables_move_places() {
    let located = |name: &str, variable: &str, value: &str| {
        probe(name).located(&|asked: &str| (asked == variable).then(|| value.to_owned()))
    };
    assert!(located("aws-credentials", "AWS_SHARED_CREDENTIALS_FILE", "/x/c").contains(&"/x/c".to_owned()));
    assert!(located("kubeconfig", "KUBECONFIG", "/a:/b").ends_with(&["/a".to_owned(), "/b".to_owned()]));
    assert!(located("gnupg-private-key", "GNUPGHOME", "/g/").contains(&"/g/private-keys-v1.d/*.key".to_owned()));
    assert!(located("github-cli", "XDG_CONFIG_HOME", "/c").contains(&"/c/gh/hosts.yml".to_owned()));
    assert!(located("kerberos-ticket", "KRB5CCNAME", "FILE:/t/c").contains(&"/t/c".to_owned()));
    assert_eq!(located("github-cli", "OTHER", "/c"), probe("github-cli").paths);
    assert_eq!(located("kubeconfig", "KUBECONFIG", ""), probe("kubeconfig").paths);
}

#[test]
fn kinds_have_stable_names() {
    for kind in Kind::all() {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Kind::from_name("nothing"), None);
}

/// `POLCTL_BLESS=1` writes the page.
#[test]
fn the_page_of_locations_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/census-locations.md");
    let page = locations_page();
    if std::env::var_os("POLCTL_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/census-locations.md differs from probes.table; write it with POLCTL_BLESS=1");
}
