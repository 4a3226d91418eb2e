//! The page of `polctl report`, made of plain data and opened in a real Chromium: it reads well
//! for eyes, keys and screen readers, and nothing in it that comes from outside has an effect.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod browser_common;

use std::path::PathBuf;

use browser_common::Browser;
use polctl::diag::{Code, Evidence, Finding, RuleCounts, TextChange};
use polctl::report::{
    EntryView, HistoryView, Instance, Page, Report, RuleView, SettingView, Step, StepOutcome, SubjectView, SurfaceView,
    html,
};
use polctl::source::{SourceMap, Span};

/// Texts that would do something if anything let them.
const HOSTILE: [&str; 9] = [
    "<script>window.hacked = 1; document.title = 'hacked'</script>",
    "<img src=x onerror=\"window.hacked = 2\">",
    "\"><svg onload=window.hacked=3>",
    "'; window.hacked = 4; //</script></style></title><h1>Passed: no widenings</h1>",
    "a\u{202e}segnahc on :dessaP\u{202c}\u{2066}\u{200f}",
    "\u{1b}[2J\u{1b}[32mPassed\u{0}\u{8}",
    "`</code></bdi><style>h1 { display: none }</style>`",
    "Z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}\u{30c}\u{30d}\u{30e}\u{30f}\u{310}\u{311}",
    "javascript:window.hacked=5",
];

/// A page in which every text is this one.
fn page(text: &str) -> (Page, SourceMap) {
    let mut map = SourceMap::new();
    let old = map.add(text, Some(text), &format!("first\n- `{text}`\nlast\n"));
    let new = map.add("SUDO.md", None, &format!("first\n- `{text}` changed {text}\nlast\n"));
    let (was, is) = (Span::new(old, 6, map.text(old).len() - 5), Span::new(new, 6, map.text(new).len() - 5));
    let evidence = |tier| Evidence {
        surface: "commands".into(),
        rungs: vec![tier],
        witness: text.into(),
        assumes: vec![text.into()],
        replay: Some(vec!["--agent".into(), text.into()]),
        old_tier: None,
        new_tier: Some(tier),
        request: None,
    };
    let finding = |code, tier| {
        let mut finding = Finding::new(code, is, format!("`{text}` {text}"))
            .help(text)
            .label(text)
            .related(was, text)
            .evidence(evidence(tier));
        finding.texts = vec![TextChange { old: Some(was), new: Some(is) }];
        finding
    };
    let findings = vec![
        finding(Code::WIDENING, 0),
        finding(Code::NARROWING, 2),
        finding(Code::CONFIG_WIDENING, 1),
        Finding::new(Code::EXECUTES, is, text),
    ];
    let step = |outcome| Step {
        id: "0123456789".into(),
        date: "2026-01-02".into(),
        author: text.into(),
        subject: text.into(),
        against: Some("abcdef0123".into()),
        outcome,
    };
    let rule = |tier, covered| RuleView {
        tier,
        pattern: text.into(),
        conditions: vec![("with", text.into())],
        why: text.into(),
        span: is,
        examples: vec![(text.into(), true), (text.into(), false)],
        covered,
        instance: Some(Instance { line: text.into(), assumes: vec![text.into()], tier: None }),
    };
    let page = Page {
        set: text.into(),
        policy_id: Some("0".repeat(64)),
        surfaces: vec![SurfaceView {
            name: "commands",
            unmatched: 2,
            span: is,
            effects: vec!["allow locally", "allow locally, logged", "sandbox first", "sandbox, counted", "deny"],
            rules: vec![rule(0, true), rule(4, false)],
        }],
        subjects: vec![SubjectView {
            name: text.into(),
            parent: Some(text.into()),
            span: is,
            entries: vec![EntryView { name: text.into(), tier: Some("ask"), span: is }],
        }],
        settings: vec![SettingView { name: text.into(), values: vec![text.into()], span: Some(is) }],
        history: Some(HistoryView {
            range: text.into(),
            commits: 3,
            steps: vec![
                step(StepOutcome::First { rules: 2 }),
                step(StepOutcome::Compared(findings.clone())),
                step(StepOutcome::Malformed { findings: findings.clone(), reason: Some(text.into()) }),
                step(StepOutcome::Absent),
            ],
        }),
        report: Report {
            command: "report",
            compared: Some((format!("revision `{text}`"), text.into())),
            policy_ids: (None, None),
            rules: Some(RuleCounts {
                unchanged: 1,
                fresh: 1,
                gone: 1,
                same_configuration: true,
                ..RuleCounts::default()
            }),
            exit_code: 1,
            findings,
        },
    };
    (page, map)
}

fn written(text: &str, dir: &tempfile::TempDir) -> PathBuf {
    let (page, map) = page(text);
    let file = dir.path().join("page.html");
    std::fs::write(&file, html(&page, &map)).unwrap();
    file
}

/// The first line for the findings of [`page`].
const VERDICT: &str = "Failed: 2 widenings, 1 narrowing, 1 warning";

#[test]
fn nothing_that_comes_from_outside_has_an_effect() {
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    browser.size(1200, 900, false);
    browser.open(&written("plain", &dir));
    let elements = browser.eval("document.querySelectorAll('*:not(.unseen):not(code)').length");
    let headline = browser.eval("JSON.stringify(document.querySelector('h1').getBoundingClientRect())");
    let mut seen = 0;
    for text in HOSTILE {
        let file = written(text, &dir);
        let bytes = std::fs::read_to_string(&file).unwrap();
        assert!(!bytes.contains(|c| polctl::source::is_unseen(c) && c != '\n'), "{text:?} is written as it is");
        browser.open(&file);
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{text:?}");
        assert_eq!(browser.eval("window.hacked ?? null"), serde_json::Value::Null, "{text:?}");
        assert_eq!(browser.eval("document.querySelector('h1').innerText"), VERDICT, "{text:?}");
        assert_eq!(
            browser.eval("JSON.stringify(document.querySelector('h1').getBoundingClientRect())"),
            headline,
            "{text:?}"
        );
        // Code in sentences comes and goes with backticks; nothing else may.
        if !text.contains('`') {
            let now = browser.eval("document.querySelectorAll('*:not(.unseen):not(code)').length");
            assert_eq!(now, elements, "{text:?} makes elements");
        }
        assert_eq!(browser.eval("document.querySelectorAll('h1, head title, script, style').length"), 4, "{text:?}");
        assert_eq!(
            browser.eval("[...document.links].filter((a) => !a.getAttribute('href').startsWith('#')).length"),
            0
        );
        // What cannot be seen is seen; what can be is there letter by letter.
        let shown = browser.eval("document.querySelector('.finding .witness code').textContent");
        let expected: String = text
            .chars()
            .map(|c| if polctl::source::is_unseen(c) { c.escape_unicode().to_string() } else { c.to_string() })
            .collect();
        assert_eq!(shown, expected);
        assert!(browser.eval("document.title").as_str().unwrap().starts_with(VERDICT));
        seen += 1;
    }
    assert_eq!(seen, HOSTILE.len());
}

/// Markup that got in by some mistake would still do nothing: the page's own policy refuses it.
#[test]
fn the_page_allows_its_own_script_and_style_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = written("plain", &dir);
    let page = std::fs::read_to_string(&file).unwrap();
    let injected = "<script>window.hacked = 1</script><script src=other.js></script><img src=x.png onerror='window.hacked = 2'>\
        <style>h1 { display: none }</style><p id=styled style='position: fixed'>x</p><iframe src=other.html></iframe>\
        <form action=other.html><button id=send>x</button></form><base href='https://example.com/'></main>";
    std::fs::write(&file, page.replace("</main>", injected)).unwrap();
    for other in ["other.js", "other.html", "x.png"] {
        std::fs::write(dir.path().join(other), "window.hacked = 3; window.parent.hacked = 4").unwrap();
    }
    let mut browser = Browser::start();
    browser.open(&file);
    assert!(!browser.complaints().is_empty(), "the browser says what it refused");
    assert_eq!(browser.eval("window.hacked ?? null"), serde_json::Value::Null);
    assert_eq!(browser.eval("document.querySelector('h1').checkVisibility()"), true);
    assert_eq!(browser.eval("getComputedStyle(document.getElementById('styled')).position"), "static");
    assert_eq!(browser.eval("document.querySelector('iframe').contentDocument?.body?.innerText ?? ''"), "");
    assert!(browser.eval("document.baseURI").as_str().unwrap().starts_with("file:"));
    browser.eval("document.getElementById('send').click()");
    browser.eval("new Promise((done) => setTimeout(done, 100))");
    assert!(browser.eval("location.href").as_str().unwrap().ends_with("/page.html"));
    // The page's own script still works.
    assert_eq!(browser.eval("document.querySelector('.controls').hidden"), false);
}

#[test]
fn text_that_is_painted_outside_its_line_does_not_reach_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    browser.open(&written("plain", &dir));
    let clipped = "[...document.querySelectorAll('code, bdi, .source')].filter((e) => {
        for (let at = e; at; at = at.parentElement) if (getComputedStyle(at).contain.includes('paint')) return false;
        return true;
    }).map((e) => e.closest('[class], [id]')?.className + ': ' + e.textContent).join('; ')";
    // What polctl itself wrote stands in the footer and above the lists.
    let free: String = browser.eval(clipped).as_str().unwrap().to_owned();
    assert!(!free.contains("plain"), "{free}");
    for selector in ["code", ".source"] {
        let style = browser.eval(&format!(
            "(() => {{ const s = getComputedStyle(document.querySelector('{selector}')); return s.direction + ' ' + s.unicodeBidi }})()"
        ));
        assert_eq!(style, "ltr isolate-override", "{selector}");
    }
}

#[test]
fn a_screen_reader_is_told_what_everything_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    browser.open(&written("plain", &dir));
    browser.eval("document.querySelectorAll('details').forEach((d) => { d.open = true })");
    let spoken = browser.spoken();
    let mut controls = 0;
    for (role, name) in &spoken {
        let needs = [
            "button",
            "link",
            "searchbox",
            "textbox",
            "combobox",
            "heading",
            "img",
            "image",
            "navigation",
            "region",
            "table",
            "DisclosureTriangle",
        ];
        if needs.contains(&role.as_str()) {
            assert!(!name.trim().is_empty(), "a {role} without a name");
            controls += 1;
        }
    }
    assert!(controls > 20, "{controls}");
    for wanted in
        [("searchbox", "Filter"), ("combobox", "Colours"), ("button", "Open all"), ("navigation", "Parts of this page")]
    {
        assert!(spoken.iter().any(|(role, name)| (role.as_str(), name.as_str()) == wanted), "{wanted:?}");
    }
    // Headings: one of the first level, and none that skips a level.
    let levels = browser.eval("[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => h.tagName[1]).join('')");
    let levels: Vec<u32> = levels.as_str().unwrap().chars().map(|c| c.to_digit(10).unwrap()).collect();
    assert_eq!((levels[0], levels.iter().filter(|l| **l == 1).count()), (1, 1), "{levels:?}");
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    assert_eq!(browser.eval("document.documentElement.lang"), "en");
    let twice = browser.eval("(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size })()");
    assert_eq!(twice, 0);
    let dead =
        browser.eval("[...document.links].filter((a) => !document.querySelector(a.getAttribute('href'))).length");
    assert_eq!(dead, 0);
}

/// Contrast of the text colours on what they stand on, as WCAG 2 counts it; 4.5 is level AA.
const CONTRAST: &str = "(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => { const f = [r, g, b].map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
    const ground = (e) => { for (let at = e; at; at = at.parentElement) { const c = rgb(getComputedStyle(at).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
    let worst = [99, ''];
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
        const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))];
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 120)];
    }
    return worst;
})()";

#[test]
fn colours_follow_the_system_and_the_reader_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let paper = "getComputedStyle(document.body).backgroundColor";
    browser.media("screen", "light");
    browser.open(&written("plain", &dir));
    let light = browser.eval(paper);
    let readable = |browser: &mut Browser, what: &str| {
        let worst = browser.eval(CONTRAST);
        assert!(worst[0].as_f64().unwrap() >= 4.5, "{what}: {worst}");
    };
    readable(&mut browser, "light");
    browser.media("screen", "dark");
    let dark = browser.eval(paper);
    assert_ne!(light, dark);
    readable(&mut browser, "dark");
    browser.key("t");
    assert_eq!(
        (browser.eval("document.getElementById('theme').value"), browser.eval(paper)),
        ("light".into(), light.clone())
    );
    browser.key("t");
    assert_eq!((browser.eval("document.getElementById('theme').value"), browser.eval(paper)), ("dark".into(), dark));
    // What was chosen is there the next time, and the system's choice can be had back.
    browser.open(&dir.path().join("page.html"));
    assert_eq!(browser.eval("document.documentElement.dataset.theme"), "dark");
    browser.eval(
        "(() => { const t = document.getElementById('theme'); t.value = ''; t.dispatchEvent(new Event('change')) })()",
    );
    browser.media("screen", "light");
    assert_eq!(browser.eval(paper), light);
    browser.media("print", "dark");
    assert_eq!(browser.eval("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
    assert_eq!(browser.eval("document.querySelector('.controls').checkVisibility()"), false);
    readable(&mut browser, "print");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_filter_and_the_keys_work() {
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    // A 4 that stands anywhere is no tier.
    browser.open(&written("plain 4", &dir));
    let visible = "[...document.querySelectorAll('[data-row]')].filter((row) => !row.hidden).length";
    let all = browser.eval(visible).as_u64().unwrap();
    browser.key("/");
    assert_eq!(browser.eval("document.activeElement.id"), "filter");
    for letter in "TIER 4".chars() {
        browser.key(&letter.to_string());
    }
    let found = browser.eval(visible).as_u64().unwrap();
    assert!(0 < found && found < all, "{found} of {all}");
    assert_eq!(browser.eval("document.getElementById('shown').textContent"), format!("{found} of {all} shown"));
    assert!(browser.spoken().iter().any(|(role, _)| role == "status"));
    let folded =
        "[...document.querySelectorAll('#authority details')].map((d) => `${d.id} ${d.hidden} ${d.open}`).join()";
    assert_eq!(browser.eval(folded), "commands-0 true false,commands-4 false true");
    // Keys are letters while somebody types.
    assert_eq!(browser.eval("document.getElementById('filter').value"), "TIER 4");
    browser.key("Escape");
    assert_eq!(browser.eval(visible), all);
    assert_eq!(browser.eval("document.getElementById('shown').textContent"), "");
    let focused = "[...document.querySelectorAll('article')].indexOf(document.activeElement)";
    for (key, at) in [("n", 0), ("n", 1), ("n", 2), ("n", 0), ("p", 2)] {
        browser.key(key);
        assert_eq!(browser.eval(focused), at, "{key}");
    }
    for (open, words) in [("true", "Close all"), ("false", "Open all")] {
        browser.key("o");
        assert_eq!(browser.eval("document.getElementById('fold').getAttribute('aria-pressed')"), open);
        assert_eq!(browser.eval("document.getElementById('fold').textContent"), words);
        assert_eq!(browser.eval("[...document.querySelectorAll('details')].every((d) => String(d.open) === document.getElementById('fold').getAttribute('aria-pressed'))"), true);
    }
    // A link to a closed part opens it.
    browser.eval("document.querySelector('a[href=\"#commands-4\"]').click()");
    browser.eval("new Promise((done) => setTimeout(done, 50))");
    assert_eq!(browser.eval("document.getElementById('commands-4').open"), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn it_fits_a_phone_and_is_read_without_the_script() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("kubectl {}", "namespace/".repeat(60));
    let file = written(&long, &dir);
    let mut browser = Browser::start();
    browser.size(360, 740, true);
    browser.open(&file);
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 360, "nothing scrolls sideways");
    assert_eq!(
        browser.eval("getComputedStyle(document.querySelector('.sides')).gridTemplateColumns.split(' ').length"),
        1
    );
    browser.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({"value": true}));
    browser.open(&file);
    browser.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({"value": false}));
    assert_eq!(
        browser.eval("document.querySelector('.controls').checkVisibility()"),
        false,
        "no control that does nothing"
    );
    assert_eq!(browser.eval("document.querySelector('h1').innerText"), VERDICT);
    assert_eq!(browser.eval("document.querySelectorAll('[hidden]').length"), 1);
    // Paper has no parts to open.
    browser.media("print", "light");
    browser.eval("document.querySelectorAll('details').forEach((d) => { d.open = false })");
    let read = browser.eval(
        "[...document.querySelectorAll('details [data-row] code')].every((e) => e.getBoundingClientRect().height > 0)",
    );
    assert_eq!(read, true);
}
