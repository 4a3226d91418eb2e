//! Rules that Markdown would drop without a word: each must be a finding.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::Files;
use polctl::diag::{Kind, info};
use polctl::parse::load;
use polctl::source::SourceMap;

const HEAD: &str = "---\npolctl: v1\nsurface: commands\n---\n# Map\n\n";
const FIRST: &str = "## Tier 0\n\n- `ls **`\n\n";

fn malformed(body: &str) -> Vec<String> {
    let config = "polctl: v1\nset: demo\npolicies: [map.md]\n".to_owned();
    let files = Files([("polctl.yaml".to_owned(), config), ("map.md".to_owned(), format!("{HEAD}{body}"))].into());
    let mut findings = Vec::new();
    load(&files, &mut SourceMap::new(), &mut findings).unwrap();
    findings.retain(|f| info(f.code).kind == Kind::Malformed);
    findings.iter().map(|f| f.code.as_str().to_owned()).collect()
}

#[test]
fn headings_that_are_almost_tiers() {
    for heading in [
        "## 🔴 Tier 4",
        "## 4. Tier 4",
        "## Teir 4",
        "## Level 4",
        "## \u{422}ier 4",
        "##Tier 4",
        "## tier 4",
        "## Tier4",
        "## Tier-4",
        "## TIER 4",
        "## Tier four",
        "## Tier 4/3",
        "## Tier 4 and 3",
        "## The tier 4 rules",
    ] {
        for body in [format!("{FIRST}{heading}\n\n- `rm **`\n"), format!("{heading}\n\n- `rm **`\n\n{FIRST}")] {
            assert!(!malformed(&body).is_empty(), "{body}");
        }
    }
    for heading in ["## Files", "## Tiers of danger in words", "## Frontier 5 notes", "### Group 1"] {
        assert!(malformed(&format!("{heading}\n\nProse.\n\n{FIRST}")).is_empty(), "{heading}");
    }
}

#[test]
fn rules_that_no_reader_takes() {
    for rest in [
        "## Files\n\n- `rm **`\n",
        "- `rm **\n",
        "- rm **\n",
        "- &#96;rm **&#96;\n",
        "| rules | with |\n|---|---|\n| rm ** | -r |\n",
        "| cmd |\n|---|\n| rm |\n",
        "1. see `rm **`\n",
        "> - `rm **`\n",
        "    - `rm **`\n\n        rm -r\n",
        "<!-- - `rm **` -->\n",
        "<details>\n- `rm **`\n</details>\n",
        "```sh\nrm **\n```\n",
        "~~~\nrm **\n~~~\n",
        "- **`rm **`**\n",
        "- [`rm **`](x)\n",
        "```rules\nrm ** with: -r, -f\n```\n",
    ] {
        assert!(!malformed(&format!("{FIRST}{rest}")).is_empty(), "{rest}");
    }
    for above in ["<!-- ## Tier 4\n- `rm **` -->\n\n", "<details>\n## Tier 4\n- `rm **`\n</details>\n\n"] {
        assert!(!malformed(&format!("{above}{FIRST}")).is_empty(), "{above}");
    }
    for good in
        ["1. `rm **`\n", "* `rm **`\n", "~~~rules\nrm **\n~~~\n", "- [ ] a task\n", "Some prose.\n", "- prose item\n"]
    {
        assert_eq!(malformed(&format!("{FIRST}{good}")), Vec::<String>::new(), "{good}");
    }
}
