//! Cedar written by hand, as it stands in files: policies, templates with their links, and a
//! schema, each with its place (DESIGN 6, plain Cedar).

mod shape;
mod split;

pub use shape::{SchemaChange, joined, new_members, now_optional, schema_changes};
pub use split::statements;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cedar_policy::{EntityUid, Policy, PolicyId, PolicySet, Schema, SchemaFragment, SlotId, Template};

use super::Effect;
use crate::diag::{Code, Finding};
use crate::source::{FileId, SourceMap, Span};

/// A policy with its place.
#[derive(Clone, Debug)]
pub struct PlainPolicy {
    /// Its `@id`, or `policy` and its number in the file.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// The policy; a link of a template stands here with its entities.
    pub policy: Policy,
    /// Equal numbers, equal meaning. What the scope says of actions is not in it.
    pub meaning: u64,
}

/// A template that nothing links.
#[derive(Clone, Debug)]
pub struct PlainTemplate {
    /// Its `@id`, or `policy` and its number in the file.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Permit or forbid.
    pub effect: Effect,
    /// Its meaning: equal texts, equal meaning.
    pub meaning: String,
}

/// One version of plain Cedar.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its policies, in the order of the file.
    pub policies: Vec<PlainPolicy>,
    /// Its templates without a link.
    pub templates: Vec<PlainTemplate>,
    /// Its schema.
    pub schema: Schema,
    /// The schema as JSON, for what changed in it.
    pub shape: serde_json::Value,
    /// The file of the policies.
    pub file: FileId,
    /// The file of the schema.
    pub schema_file: FileId,
}

/// The texts of one version.
#[derive(Clone, Copy, Debug)]
pub struct PlainTexts {
    /// The policies: Cedar, or its JSON where the name ends in `.json`.
    pub policies: FileId,
    /// The schema: Cedar, or its JSON where the name ends in `.json`.
    pub schema: FileId,
    /// Links of templates, as the `cedar` tool reads them.
    pub links: Option<FileId>,
}

/// A statement, parsed once for both versions.
#[derive(Clone)]
enum Statement {
    Policy(Policy),
    Template(Template),
    Wrong(String),
}

/// Reads versions; what two of them share is parsed once.
#[derive(Default)]
pub struct PlainReader {
    parsed: HashMap<Arc<str>, (Statement, u64)>,
    meanings: HashMap<String, u64>,
    numbers: u64,
}

impl PlainReader {
    /// Parses the statements of files together, each once: Cedar's lexer is costly to start. What
    /// does not parse is left to [`PlainReader::read`], which says what is wrong with it.
    pub fn prepare(&mut self, files: &[FileId], map: &SourceMap) {
        let mut unique: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for file in files {
            let text = map.text(*file);
            if !map.get(*file).is_some_and(|f| f.name.ends_with(".json")) {
                let all = statements(text).into_iter().filter_map(|range| text.get(range));
                unique.extend(all.filter(|statement| seen.insert(*statement)));
            }
        }
        let Ok(set) = unique.join("\n").parse::<PolicySet>() else { return };
        // Cedar numbers policies and templates in the order of the text.
        let position = |id: &PolicyId| AsRef::<str>::as_ref(id).strip_prefix("policy")?.parse::<usize>().ok();
        let policies = set.policies().map(|p| (position(p.id()), Statement::Policy(p.clone())));
        let templates = set.templates().map(|t| (position(t.id()), Statement::Template(t.clone())));
        let mut found: Vec<(usize, Statement)> =
            policies.chain(templates).filter_map(|(at, statement)| Some((at?, statement))).collect();
        if found.len() != unique.len() {
            return;
        }
        found.sort_by_key(|(at, _)| *at);
        for (text, (_, statement)) in unique.into_iter().zip(found) {
            self.numbers += 1;
            self.parsed.insert(text.into(), (statement, self.numbers));
        }
    }

    /// Reads a version. What is wrong becomes a finding, and there is no version then.
    pub fn read(&mut self, texts: PlainTexts, map: &SourceMap, sink: &mut Vec<Finding>) -> Option<Plain> {
        let before = sink.len();
        let schema = schema(texts.schema, map, sink);
        let is_json = map.get(texts.policies).is_some_and(|f| f.name.ends_with(".json"));
        let mut version = if is_json { self.json(texts, map, sink) } else { self.cedar(texts, map, sink) };
        if let Some(links) = texts.links {
            self.link(links, &mut version, map, sink);
        }
        let (schema, shape) = schema.filter(|_| sink.len() == before)?;
        let Version { policies, templates } = version;
        let templates = templates.into_iter().filter(|t| !t.linked).map(|t| t.plain).collect();
        Some(Plain { policies, templates, schema, shape, file: texts.policies, schema_file: texts.schema })
    }

    fn cedar(&mut self, texts: PlainTexts, map: &SourceMap, sink: &mut Vec<Finding>) -> Version {
        let text = map.text(texts.policies);
        let mut out = Version::default();
        for (number, range) in statements(text).into_iter().enumerate() {
            let span = Span::new(texts.policies, range.start, range.end);
            let (statement, meaning) = self.statement(text.get(range).unwrap_or_default());
            let named = |id: Option<&str>| id.map_or_else(|| format!("policy{number}"), str::to_owned);
            match statement {
                Statement::Policy(policy) => {
                    let name = named(policy.annotation("id"));
                    out.policies.push(PlainPolicy { name, span, policy, meaning });
                }
                Statement::Template(template) => {
                    let name = named(template.annotation("id"));
                    let meaning = template.to_json().map(|j| stripped(j, true).to_string()).unwrap_or_default();
                    out.templates.push(Linkable {
                        plain: PlainTemplate { name, span, effect: effect(&template), meaning },
                        template,
                        linked: false,
                    });
                }
                Statement::Wrong(error) => sink.push(
                    Finding::new(Code::CEDAR, span, format!("this is not a Cedar policy: {error}"))
                        .help("see the Cedar policy syntax; each policy ends with `;`"),
                ),
            }
        }
        out
    }

    /// A statement with its number of meaning.
    fn statement(&mut self, text: &str) -> (Statement, u64) {
        if let Some(known) = self.parsed.get(text) {
            return known.clone();
        }
        let statement = match Policy::parse(None, text) {
            Ok(policy) => Statement::Policy(policy),
            Err(error) => match Template::parse(None, text) {
                Ok(template) => Statement::Template(template),
                Err(_) => Statement::Wrong(chain(&error)),
            },
        };
        self.numbers += 1;
        let entry = (statement, self.numbers);
        self.parsed.insert(text.into(), entry.clone());
        entry
    }

    /// Numbers that are the same for the same meaning, for policies that only one of two
    /// versions has in these words.
    pub fn settle(&mut self, old: &mut Plain, new: &mut Plain) {
        let numbers =
            |version: &Plain| version.policies.iter().map(|p| p.meaning).collect::<std::collections::HashSet<_>>();
        let (before, after) = (numbers(old), numbers(new));
        for (version, others) in [(old, after), (new, before)] {
            for policy in version.policies.iter_mut().filter(|p| !others.contains(&p.meaning)) {
                let Ok(json) = policy.policy.to_json() else { continue };
                let number = policy.meaning;
                policy.meaning = *self.meanings.entry(stripped(json, false).to_string()).or_insert(number);
            }
        }
    }

    fn json(&mut self, texts: PlainTexts, map: &SourceMap, sink: &mut Vec<Finding>) -> Version {
        let text = map.text(texts.policies);
        let span = Span::new(texts.policies, 0, 0);
        let mut out = Version::default();
        let set = match PolicySet::from_json_str(text) {
            Ok(set) => set,
            Err(error) => {
                sink.push(
                    Finding::new(
                        Code::CEDAR,
                        span,
                        format!("this is not a Cedar policy set in JSON: {}", chain(&error)),
                    )
                    .help("a set has `staticPolicies`, `templates` and `templateLinks`"),
                );
                return out;
            }
        };
        let mut linked: Vec<PolicyId> = Vec::new();
        let mut policies: Vec<&Policy> = set.policies().collect();
        policies.sort_by_key(|p| p.id().to_string());
        for policy in policies {
            linked.extend(policy.template_id().cloned());
            match policy.to_json().ok().and_then(|json| Policy::from_json(None, json).ok()) {
                Some(fixed) => self.push(&mut out, policy.id().to_string(), span, fixed),
                None => {
                    sink.push(Finding::new(Code::CEDAR, span, format!("the policy `{}` cannot be read", policy.id())));
                }
            }
        }
        for template in set.templates() {
            let meaning = template.to_json().map(|j| stripped(j, true).to_string()).unwrap_or_default();
            out.templates.push(Linkable {
                plain: PlainTemplate { name: template.id().to_string(), span, effect: effect(template), meaning },
                template: template.clone(),
                linked: linked.contains(template.id()),
            });
        }
        out.templates.sort_by(|a, b| a.plain.name.cmp(&b.plain.name));
        out
    }

    fn push(&mut self, out: &mut Version, name: String, span: Span, policy: Policy) {
        self.numbers += 1;
        let number = self.numbers;
        let meaning = match policy.to_json() {
            Ok(json) => *self.meanings.entry(stripped(json, false).to_string()).or_insert(number),
            Err(_) => number,
        };
        out.policies.push(PlainPolicy { name, span, policy, meaning });
    }

    /// Links templates by a file of `[{"template_id", "link_id", "args": {"?principal": …}}]`.
    fn link(&mut self, file: FileId, version: &mut Version, map: &SourceMap, sink: &mut Vec<Finding>) {
        let span = Span::new(file, 0, 0);
        let links: Vec<Link> = match serde_json::from_str(map.text(file)) {
            Ok(links) => links,
            Err(error) => {
                sink.push(
                    Finding::new(Code::CEDAR, span, format!("this is not a list of template links: {error}")).help(
                        r#"write `[{"template_id": "t", "link_id": "l", "args": {"?principal": "User::\"a\""}}]`"#,
                    ),
                );
                return;
            }
        };
        for link in links {
            let Some(linkable) = version.templates.iter_mut().find(|t| t.plain.name == link.template_id) else {
                sink.push(
                    Finding::new(
                        Code::CEDAR,
                        span,
                        format!("there is no template `{}` for the link `{}`", link.template_id, link.name),
                    )
                    .help("a template is named by its `@id`"),
                );
                continue;
            };
            linkable.linked = true;
            match link.policy(&linkable.template) {
                Ok(policy) => {
                    let place = linkable.plain.span;
                    self.push(version, link.name.clone(), place, policy);
                }
                Err(why) => {
                    sink.push(Finding::new(
                        Code::CEDAR,
                        span,
                        format!("the link `{}` does not fit its template: {why}", link.name),
                    ));
                }
            }
        }
    }
}

fn effect(template: &Template) -> Effect {
    match template.effect() {
        cedar_policy::Effect::Permit => Effect::Permit,
        cedar_policy::Effect::Forbid => Effect::Forbid,
    }
}

#[derive(Default)]
struct Version {
    policies: Vec<PlainPolicy>,
    templates: Vec<Linkable>,
}

struct Linkable {
    plain: PlainTemplate,
    template: Template,
    linked: bool,
}

/// A link of a template, as the `cedar` tool reads it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    template_id: String,
    #[serde(rename = "link_id")]
    name: String,
    args: BTreeMap<String, String>,
}

impl Link {
    /// The policy that the link makes, with its entities in place of the slots.
    fn policy(&self, template: &Template) -> Result<Policy, String> {
        let mut set = PolicySet::new();
        set.add_template(template.new_id(PolicyId::new("template"))).map_err(|e| e.to_string())?;
        let mut values: HashMap<SlotId, EntityUid> = HashMap::new();
        for (slot, uid) in &self.args {
            let slot = match slot.as_str() {
                "?principal" => SlotId::principal(),
                "?resource" => SlotId::resource(),
                other => return Err(format!("`{other}` is no slot")),
            };
            values.insert(slot, uid.parse().map_err(|_| format!("`{uid}` is no entity"))?);
        }
        set.link(PolicyId::new("template"), PolicyId::new("link"), values).map_err(|e| e.to_string())?;
        let linked = set.policy(&PolicyId::new("link")).ok_or("it is missing")?;
        let json = linked.to_json().map_err(|e| e.to_string())?;
        Policy::from_json(None, json).map_err(|e| e.to_string())
    }
}

/// A policy's JSON without what means nothing; without the actions of the scope too, since
/// those are judged request environment by request environment.
fn stripped(mut json: serde_json::Value, with_action: bool) -> serde_json::Value {
    if let Some(object) = json.as_object_mut() {
        object.remove("annotations");
        if !with_action {
            object.remove("action");
        }
    }
    json
}

fn schema(file: FileId, map: &SourceMap, sink: &mut Vec<Finding>) -> Option<(Schema, serde_json::Value)> {
    let text = map.text(file);
    let is_json = map.get(file).is_some_and(|f| f.name.ends_with(".json"));
    let fragment = if is_json {
        SchemaFragment::from_json_str(text).map_err(|e| chain(&e))
    } else {
        SchemaFragment::from_cedarschema_str(text).map(|(fragment, _)| fragment).map_err(|e| chain(&e))
    };
    let read = fragment.and_then(|fragment| {
        let shape = fragment.clone().to_json_value().map_err(|e| chain(&e))?;
        let schema = Schema::from_schema_fragments([fragment]).map_err(|e| chain(&e))?;
        Ok((schema, shape))
    });
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            sink.push(
                Finding::new(Code::CEDAR, Span::new(file, 0, 0), format!("this is not a Cedar schema: {error}"))
                    .help("see the Cedar schema syntax; a name that ends in `.json` is read as a schema in JSON"),
            );
            None
        }
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
