//! The registry of finding codes: one row each, in the order of the documentation.

use super::Level;

/// A finding's code: a short name that never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(&'static str);

impl Code {
    /// The name, as in output and configuration.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The code with this name.
    pub fn from_name(name: &str) -> Option<Code> {
        CODES.iter().map(|info| info.code).find(|code| code.0 == name)
    }
}

/// What a finding of a code means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The input cannot be read as policy: exit code 2, no verdict (DESIGN 9).
    Malformed,
    /// The policy says something that is wrong or new: exit code 1 at level error.
    Policy,
    /// polctl could not decide: exit code 3.
    Inconclusive,
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct CodeInfo {
    /// The code.
    pub code: Code,
    /// Level when configuration says nothing.
    pub level: Level,
    /// What it means for the run.
    pub kind: Kind,
    /// One line for lists.
    pub title: &'static str,
    /// What it is about and what to do, for `polctl rule CODE`.
    pub text: &'static str,
}

impl CodeInfo {
    /// The section of the documentation that explains the code, from the folder `docs/`.
    pub fn page(&self) -> String {
        format!("rules.md#{}", self.code.as_str())
    }
}

/// The row of a code. Codes can only be made here, so there always is one.
pub fn info(code: Code) -> &'static CodeInfo {
    static UNKNOWN: CodeInfo = CodeInfo {
        code: Code("internal"),
        level: Level::Error,
        kind: Kind::Inconclusive,
        title: "internal error",
        text: "A finding without a registered code. This is a defect of polctl; please report it.",
    };
    CODES.iter().find(|info| info.code == code).unwrap_or(&UNKNOWN)
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $code:literal $level:ident $kind:ident $title:literal $text:literal)*) => {
        impl Code {
            $(#[doc = $title] pub const $name: Code = Code($code);)*
        }
        /// Every code, in the order of the documentation.
        pub const CODES: &[CodeInfo] = &[
            $(CodeInfo { code: Code::$name, level: Level::$level, kind: Kind::$kind, title: $title, text: $text },)*
        ];
    };
}

codes! {
    WIDENING "widening" Error Policy
        "a request is permitted that was not permitted before"
        "The new version allows the shown request at a rung (tier) at which the old version did not. The witness was replayed through the Cedar authorizer on both versions. Narrow the rule that now permits it, or bring back the one that is gone."
    NARROWING "narrowing" Note Policy
        "a request is no longer permitted that was permitted before"
        "The old version allows the shown request at a rung at which the new version does not. Nothing is wrong; the line is there so that nobody is surprised."
    APPROVAL "approval" Error Policy
        "an approval does not count"
        "An approval that was given to `polctl check` is expired, not signed by keys that the base trusts for approvals, about another change, or about widenings that this change does not make. An approval is good for one exact change from one policy to another; after any edit it must be given anew (see docs/signing.md)."
    CONFIG_WIDENING "config-widening" Error Policy
        "a change of the configuration permits more"
        "A zone, a trusted directory, an allowed environment variable, the provenance guardrail or a hand-written guardrail changed in the direction that lets more requests through. The configuration is policy too (see `polctl.yaml` in docs/policy-format.md)."
    CAPABILITY_WIDENING "capability-widening" Error Policy
        "a field of a manifest lets more happen than before"
        "The field is no request that could be shown, and has an order all the same: a longer `ttl` or `staleness`, `retry: safe`, a higher `rate` or `max_pending`, `deferrable`, `administrative`, another parent (docs/capabilities.md, What has an order)."
    ATTENUATION "attenuation" Error Policy
        "a manifest exceeds its parent"
        "What names a `parent` stays within it: every request that the child allows, the parent allows at the same tier, and no grant of the child is looser. The shown request was replayed through the Cedar authorizer on both. Narrow the child, or widen the parent first."
    UNCLASSIFIED "unclassified" Warning Policy
        "an integration declares a capability that nobody classified"
        "What nobody classified is refused at the gate, and only that: everything else of the integration works as before. Give it a level under `grants` once someone has looked at it."
    UNDECLARED "undeclared" Error Policy
        "a grant for a capability that no integration declares"
        "A grant needs a manifest of an integration that declares the capability; without one it is refused. A misspelt name is the usual reason; an integration that lost its declaration is the dangerous one."
    UNAPPROVED "unapproved" Error Policy
        "an external action of level execute or admin needs no approval"
        "What reaches people or systems outside is approved by a person, unless the grant names the workspaces that need no approval (`unattended_in`)."
    ENFORCEMENT "enforcement" Warning Policy
        "an entry that a declared system cannot enforce"
        "A decision is no boundary where nothing below it holds. The manifest names a system under `targets` whose own means cannot hold this entry (docs/capabilities.md, What enforces it)."
    CREDENTIAL_UNCLASSIFIED "credential-unclassified" Error Policy
        "a credential on the host that nobody has classified"
        "`polctl census` found a credential, and the inventory has no row about it, or one that nobody has decided yet. Move it behind the gateway and remove it from the host, or exempt it with reason, owner and end (docs/census.md)."
    CREDENTIAL_RETURNED "credential-returned" Error Policy
        "a credential is on the host that moved behind the gateway"
        "The inventory says `moved-behind-gateway`, and the credential lies on the host all the same: it was never removed, or it came back. Remove it and replace the secret."
    CREDENTIAL_STALE "credential-stale" Error Policy
        "a row of the inventory about a credential that is no longer there"
        "A row that nothing needs would let the credential come back unseen. Remove the row, or take out of it what is gone: a label, or one of `count`."
    CREDENTIAL_MODE "credential-mode" Error Policy
        "a credential that more people can read than its kind allows"
        "Each known place has a loosest mode (docs/census-locations.md); a private key found by its content has 0600. The file's mode has bits beyond it. An exemption does not cover that. With an ACL, the bits of the group are what the ACL gives at most."
    EXEMPTION_EXPIRED "exemption-expired" Error Policy
        "an exemption whose last day is over"
        "The credential was to be gone by then. Remove it, or have the exemption prolonged: `polctl check --base` reports that as a widening, so that somebody reviews it."
    EXEMPTION_EXPIRING "exemption-expiring" Warning Policy
        "an exemption that ends soon"
        "It ends within the days that `--warn-days` says. From the day after its last one it is an error."
    EXEMPTION_EXCEEDED "exemption-exceeded" Error Policy
        "a credential beside an exempt one, which the exemption does not name"
        "An exemption covers the credentials that its row names: labels, number, fingerprint. What else is at the same place is new, such as a second profile, another token, or another key under the old name."
    EXEMPTIONS_NOT_EMPTY "exemptions-not-empty" Error Policy
        "an exemption for a host that may have none"
        "`--require-empty-exemptions` is for hosts on which every credential is behind the gateway. The break-glass row may stay."
    CENSUS_INCOMPLETE "census-incomplete" Error Inconclusive
        "the census could not look everywhere"
        "A directory or file could not be read, or a bound was reached, so nobody knows what lies there. This is never a pass. Run it as root; what must be left out is named by `--skip` and told in every report."
    COMPILER_CHANGE "compiler-change" Warning Policy
        "this polctl compiles the signed base to other policies than it was signed with"
        "The base's envelope names exactly its files, and another `policy_id` than they compile to now: the program table or the compilation of polctl changed since it was signed. A comparison of two versions cannot show that, since both are compiled anew. `polctl programs --since FILE` tells what changed in the table; sign the set anew when it is right."
    SCHEMA_CHANGE "schema-change" Note Policy
        "a Cedar schema declares something else than before"
        "`polctl diff --cedar` compares what is permitted under the new schema. What the schemas declare differently is told beside it: an attribute that is gone or optional now may be read by policies of the old version, and an action that is new was permitted to nobody before."
    INCONCLUSIVE "inconclusive" Error Inconclusive
        "polctl could not decide a question within its bounds"
        "The search for a request that is newly permitted ended without an answer: the bound was reached, a hand-written guardrail stood in the way, or a witness did not reproduce. This is never a pass. Split the rule into simpler ones, or report the case."
    NOT_CONTAINED "not-contained" Error Policy
        "a request is allowed at a rung and refused at a more controlled one"
        "Each rung must allow what the rung below it allows, since more control is never less permission. Compiled maps have this property by construction. A hand-written guardrail breaks it when it forbids a tier and not the one below: the command then still runs there, with less control. Name all tiers below as well, or leave the action open."
    EXAMPLE_FAILS "example-fails" Error Policy
        "a `match` or `no match` example does not hold"
        "An example beside a rule is a promise that is checked at every run. Either the rule or the example is wrong; the message says which condition decided."
    MATCHES_NOTHING "matches-nothing" Error Policy
        "a rule that no request can match"
        "The conditions of the rule exclude each other: nobody is protected or permitted by it."
    SHADOWED "shadowed" Warning Policy
        "a rule that stricter rules wholly cover"
        "Everything the rule would allow at its own tier is forbidden there by a stricter rule, since the strictest matching rule wins; rules of all files of a surface count. A sudo rule is also covered by rules of tier 4 of the commands map, which deny the command behind `sudo` as well. Remove it, or narrow the stricter rule (with `with`, a sub-command or a path)."
    CONTRADICTION "contradiction" Error Policy
        "the same rule stands at two tiers"
        "Two rules match exactly the same requests and say different tiers. The stricter one wins; a reader who finds the other first is misled. Keep one."
    DUPLICATE_RULE "duplicate-rule" Warning Policy
        "the same rule stands twice at one tier"
        "The second says nothing new. Remove it, so that a later change cannot be made in one place only."
    REDUNDANT_RULE "redundant-rule" Warning Policy
        "a rule that another one of its tier says in full"
        "Whatever the rule permits and restricts, the other rule permits and restricts at the same tier. Who narrows the one later is misled by the other. Remove it. A rule with a `why`, an example or an `id` of its own stands there for its readers and is not reported."
    MERGEABLE "mergeable" Note Policy
        "rules that could be one"
        "The rules stand at one tier and differ in one word, in one list of `with` or in their methods only: `git log **` and `git show **` are `git {log,show} **`. A hint, and no fault. Options that the program table knows of one sub-command only may be read more strictly in the joined rule, so let `polctl diff` show what changes. A rule with a `why`, an example or an `id` of its own is not reported."
    PROGRAM_WILDCARD "program-wildcard" Error Policy
        "a wildcard stands in program position of a permitting rule"
        "A rule of tiers 0 to 3 with a wildcard as program permits programs that nobody has looked at. Name the programs: `{cat,head,tail} **`."
    UNMATCHED_TOO_LOW "unmatched-too-low" Error Policy
        "`unmatched` is below 2"
        "What no rule matches has been judged by nobody, so it may not run without a sandbox or a person: `unmatched` is 2, 3 or 4."
    EXECUTES "executes" Warning Policy
        "a rule of tier 0 or 1 leaves open what a program runs or writes"
        "A wildcard of the rule reaches a script, a target or a file that the program executes or writes: `python3 *`, `make **`, `npm run *`. Whoever may choose that word may run anything, without a sandbox. The shown command was decided by Cedar. Name the script or the target, or put the rule at tier 2. A rule with a `why` gets a note only."
    SUDO_PATH_WILDCARD "sudo-path-wildcard" Error Policy
        "a wildcard stands in a path argument of a sudo rule"
        "With elevated rights a wildcard in a path reaches every file: `/var/log/*` also matches `/var/log/../../etc/shadow`, and a link below it. Name the files."
    SUDO_ESCAPE "sudo-escape" Error Policy
        "a sudo rule hands free arguments to a program that gives a shell or writes any file"
        "The program can be made to start a shell or to write any file by an argument that this rule leaves free; under sudo that is root. Write the exact argument list, exclude the options with `only`, or put the rule at tier 4."
    POSITIONAL_OPTION "positional-option" Warning Policy
        "a restricting rule looks for an option in one place only"
        "`git push --force **` restricts only when `--force` is the second word; `git push origin --force` goes past it. Write `git push **` with `with: --force`."
    EGRESS_WILDCARD "egress-wildcard" Error Policy
        "an egress host covers a whole top-level domain"
        "`*.com` or `**.com` permits every host of a top-level domain. Name the domain."
    GUARDRAIL_USELESS "guardrail-useless" Warning Policy
        "a permitting rule that a guardrail always stops"
        "Everything that the rule permits at its own tier, a built-in or hand-written guardrail forbids there whatever maps say, so the rule never has an effect."
    VACUOUS_GUARDRAIL "vacuous-guardrail" Warning Policy
        "a hand-written guardrail that can never hold"
        "No request meets the conditions of the guardrail, so it guards nothing: they exclude each other, or name what no request has. Correct it; a guardrail that nobody needs is removed. Guardrails beyond what polctl's own engine reads are not judged."
    RETENTION_UNCLASSIFIED "retention-unclassified" Error Policy
        "a durable table without a retention class"
        "Rows that nobody decided how long to keep are kept for ever. Every table and materialised view that the migrations leave has one class: `-- retention: CLASS` on a line before the `CREATE TABLE`, `COMMENT ON TABLE … IS 'retention: CLASS'`, or an entry under `tables` in `retention.yaml`. Partitions and heirs have the class of their parents (docs/retention.md)."
    RETENTION_CLASS "retention-class" Error Policy
        "a table's class is not declared, or it has two"
        "A class is declared under `classes` in `retention.yaml`, and a table has exactly one. The last `COMMENT ON TABLE` that names one counts, else the comment before the `CREATE TABLE`; an entry under `tables` counts beside them, so it must agree. A partition cannot have another class than the table that it is a part of."
    RETENTION_UNKNOWN "retention-unknown" Error Policy
        "a statement that may create, rename or drop tables, and polctl cannot tell which"
        "A `DO` block, `EXECUTE`, a routine, a command of psql, a condition of a template, or a statement that the grammar does not take. Write it as plain statements. Where that cannot be, say on lines before it what it does: `-- retention-creates: schema.table` with `-- retention: CLASS`, `-- retention-drops: schema.table`, or `-- retention-tables: none`. A statement that names a table which no earlier one creates is reported as well: polctl has then read something otherwise than the server."
    RETENTION_COMMENT "retention-comment" Error Policy
        "a comment about retention that belongs to no table"
        "A comment `-- retention: CLASS` counts on a line of its own directly before a statement that creates a table. At any other place it would say something to people that has no effect."
    RETENTION_AUDIT "retention-audit" Error Policy
        "an audit table without its envelope"
        "A table of a class with `audit: true` has the columns `ts timestamptz`, `workspace`, `actor`, `correlation_id`, `stack_version` (`text`, `varchar` or `uuid`) and `schema_version` (`text` or an integer), so that rows of all audit tables can be read together."
    RETENTION_PRUNING "retention-pruning" Error Policy
        "a class with a period that no watched job prunes"
        "A period holds only if something deletes what is older, and somebody is told when it stops. Name the job with `prune`, and register it in the list that `health_floor` names."
    RETENTION_UNUSED "retention-unused" Warning Policy
        "a class without tables, or an entry for a table that is not there"
        "A class that no table has is a left-over or a spelling mistake. An entry under `tables` for a table that is not there is an error, since the next table of that name would have the class without anybody's looking."
    RETENTION_BASELINE "retention-baseline" Error Policy
        "an entry of the baseline that does not count"
        "The baseline holds what an old project owed when polctl came, each entry with an owner and a date. It only shrinks: new entries and later dates are findings when compared with a base, and so are entries that are paid or whose date has passed."
    RETENTION_WEAKENED "retention-weakened" Error Policy
        "a change keeps audit rows shorter or personal data longer than before"
        "Compared with the base: a shorter period for an audit class, a longer one for personal data, a class declaration or a pruning job that is gone, a table that went to a weaker class, an audit table that is dropped. `polctl check --base` reports it too where `polctl.yaml` names the file under `retention`."
    FILE_ENCODING "file-encoding" Error Malformed
        "a policy file holds bytes that people cannot see or read"
        "Policy is UTF-8 text. Control characters, a carriage return that ends no line, and characters that change the direction of text or are invisible are refused, since a reviewer would not see what polctl reads."
    YAML_SYNTAX "yaml-syntax" Error Malformed
        "YAML that cannot be read"
        "The file or front matter is not YAML, repeats a key, or uses anchors, which policy does not need."
    UNKNOWN_KEY "unknown-key" Error Malformed
        "a key that polctl does not know"
        "An unknown key would be policy that has no effect, so it is an error. The message names the nearest known key."
    MISSING_KEY "missing-key" Error Malformed
        "a key that must be there is missing"
        "The key has no default, since any guess might permit more than was meant."
    INVALID_VALUE "invalid-value" Error Malformed
        "a value that is not of the form the key needs"
        "See docs/policy-format.md for the form."
    FRONT_MATTER "front-matter" Error Malformed
        "a tier map without front matter"
        "A tier map starts with `---`, `polctl: v1`, `surface: commands` (or `sudo`, `egress`) and `---`."
    SURFACE_CONFLICT "surface-conflict" Error Malformed
        "two files of one surface disagree"
        "Files of one surface are one set, so they must state the same `unmatched`."
    TIER_HEADING "tier-heading" Error Malformed
        "a heading that looks like a tier and is none"
        "A tier heading begins with `Tier` and a number from 0 to 4, then nothing, a space, a colon or a dash: `## Tier 3: destructive`. It stands outside lists and quotes, and not inside another tier."
    NO_RULES "no-rules" Error Malformed
        "a tier map without a rule"
        "No heading `Tier N` with a rule below it was found. An empty map is more likely a mistake than a wish."
    RULE_OUTSIDE_TIER "rule-outside-tier" Error Malformed
        "a rule outside every tier"
        "A `rules` block or a table with a `rule` column must stand below a heading `Tier N`."
    UNREAD_CODE "unread-code" Error Malformed
        "code inside a tier that is not read as a rule"
        "Inside a tier, code is policy. A rule is a list item that starts with one code span, a row of a table with a `rule` column, or a line of a `rules` block. Write it as one of these, or move the text above the first tier."
    PROSE_CONDITION "prose-condition" Error Malformed
        "a condition that only prose states"
        "The text behind a rule seems to limit it, but nothing enforces prose. Write the condition as an attribute (`unless`, `only`, `with`, `when`), or the sentence as `why`."
    RAW_HTML "raw-html" Error Malformed
        "HTML inside a tier"
        "HTML can hide or change what a reviewer sees. Write Markdown."
    TABLE_SHAPE "table-shape" Error Malformed
        "a rule table whose rows or columns do not fit"
        "Each row needs as many cells as the header; a cell that is too many would be dropped by Markdown in silence. Columns are `rule` and attribute names. Write `\\|` for a bar inside a cell."
    ATTRIBUTE "attribute" Error Malformed
        "an attribute that cannot be read"
        "Attributes are `key: values`; patterns and examples stand in code spans, separated by commas."
    COMMAND_PATTERN "command-pattern" Error Malformed
        "a command pattern that cannot be read"
        "A pattern means what it says or does not compile; see \"Command patterns\" in docs/policy-format.md."
    EGRESS_PATTERN "egress-pattern" Error Malformed
        "an egress pattern that cannot be read"
        "See \"Egress patterns\" in docs/policy-format.md."
    DUPLICATE_ID "duplicate-id" Error Malformed
        "two different rules with one id"
        "An `id` names one rule of a surface, since decisions and approvals refer to it."
    CEDAR "cedar" Error Malformed
        "Cedar policies, a schema or template links that cannot be read"
        "The file given to `polctl diff --cedar` does not parse, or its policies are not valid under the schema. Nothing is compared until it is (docs/plain-cedar.md)."
    RETENTION_MIGRATIONS "retention-migrations" Error Malformed
        "which migrations are applied, and in which order, cannot be told"
        "Say it under `migrations` in `retention.yaml`: `{ dir: db/migrations, tool: goose }`. Each tool has its own order (docs/retention.md, Which files are read). A file that is never applied, or two with one number, are reported as well."
    GUARDRAIL "guardrail" Error Malformed
        "a guardrail file that is not Cedar with `forbid` policies only"
        "Guardrails can only take away. Every policy in them is a `forbid` that is valid against the generated schema; templates are not supported."
    IMPORT_UNREADABLE "import-unreadable" Error Malformed
        "a file of another format that cannot be read to its end"
        "There is no import of a part: what was not read may forbid what the rest allows. Correct the file, write out what the message names, or give the file that is missing. A file whose own client would refuse it (a self-test that fails, a name that is not defined) is refused here as well."
    IMPORT_NARROWER "import-narrower" Note Policy
        "an imported allowance is smaller than its source"
        "Our patterns cannot say the source exactly, so the rule permits less: a wildcard stands for one argument, or what the program table calls a hazard is not permitted unless the rule names it. Nothing is wrong; widen the rule by hand where more is meant."
    IMPORT_LEFT_OUT "import-left-out" Warning Policy
        "an allowance of the source was left out"
        "No pattern of ours can say it without permitting more than the source does, or `polctl check` would refuse the rule. What it allowed falls to `unmatched`. Write a rule by hand, as narrow as it needs to be."
    IMPORT_BROADER "import-broader" Note Policy
        "an imported restriction is larger than its source"
        "Our patterns cannot say the source exactly, so the rule restricts more: what stands behind a wildcard is looked for anywhere, a path counts as its base name, a condition as always true. Nothing is wrong; narrow the rule by hand where less is meant."
    IMPORT_UNCONSULTED "import-unconsulted" Warning Policy
        "a rule that its own client accepts and never consults"
        "The source's client reads the rule without a complaint and never compares anything with it, so it neither allows nor denies, there as here. Who wrote it believes otherwise: write it in the form that is consulted."
    IMPORT_NOTE "import-note" Note Policy
        "something about an imported rule that its reader should know"
        "Nothing is lost: the rule never applies in the source either, or it stays with the source's own client."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_find_their_row() {
        for (index, row) in CODES.iter().enumerate() {
            assert_eq!(Code::from_name(row.code.as_str()), Some(row.code));
            assert!(CODES[..index].iter().all(|other| other.code != row.code));
            assert_eq!(info(row.code).title, row.title);
            assert!(!row.text.is_empty());
        }
    }
}
