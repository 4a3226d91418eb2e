//! What changed between two Cedar schemas, by name.

use std::collections::BTreeMap;

use serde_json::Value;

/// What happened to an attribute that policies may read without asking for it.
const OPTIONAL: &str = "is optional now";

/// A difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// What it is about: `User.clearance`, `Action::"delete"`.
    pub about: String,
    /// What happened, in a few words.
    pub what: &'static str,
    /// Whether policies of the old version may have read what is no longer there.
    pub lost: bool,
}

/// The differences, in order of name.
pub fn schema_changes(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let (before, after) = (facts(old), facts(new));
    let mut out = Vec::new();
    for name in before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (what, lost) = match (before.get(name), after.get(name)) {
            (Some(_), None) => ("is gone", true),
            (None, Some(_)) => ("is new", false),
            (Some(a), Some(b)) if a != b => match (a.required, b.required) {
                (true, false) => (OPTIONAL, true),
                (false, true) => ("is required now", false),
                _ => ("has changed", false),
            },
            _ => continue,
        };
        // What goes with its whole is told with it.
        let of = |facts: &BTreeMap<String, Fact>| facts.get(name).map(|fact| fact.of.clone());
        let whole = of(&before).or_else(|| of(&after)).unwrap_or_default();
        let told = before.contains_key(&whole) != after.contains_key(&whole);
        if !told {
            out.push(SchemaChange { about: name.clone(), what, lost });
        }
    }
    out
}

/// A schema with what another declares beside it: attributes of the same types and of the
/// contexts of the same actions, and what those need. Requests of both can be said in it, as
/// far as `schema` has their actions.
pub fn joined(schema: &Value, other: &Value) -> Value {
    let mut out = schema.clone();
    for (namespace, theirs) in other.as_object().into_iter().flatten() {
        let Some(ours) = out.get_mut(namespace) else { continue };
        for section in ["commonTypes", "entityTypes"] {
            for (name, declared) in theirs.get(section).and_then(Value::as_object).into_iter().flatten() {
                if let Some(kind) = ours.get_mut(section).and_then(|s| s.get_mut(name)) {
                    add_attributes(kind.get_mut("shape"), declared.get("shape"));
                } else if let Some(all) = ours.get_mut(section).and_then(Value::as_object_mut) {
                    all.insert(name.clone(), declared.clone());
                }
            }
        }
        for (name, action) in theirs.get("actions").and_then(Value::as_object).into_iter().flatten() {
            let context = |action: &Value| action.get("appliesTo").and_then(|a| a.get("context")).cloned();
            let own = ours.get_mut("actions").and_then(|a| a.get_mut(name)).and_then(|a| a.get_mut("appliesTo"));
            add_attributes(own.and_then(|a| a.get_mut("context")), context(action).as_ref());
        }
    }
    out
}

fn add_attributes(own: Option<&mut Value>, other: Option<&Value>) {
    let Some(own) = own.and_then(|o| o.get_mut("attributes")).and_then(Value::as_object_mut) else { return };
    for (name, declared) in attributes(other) {
        if !own.contains_key(name) {
            own.insert(name.clone(), declared.clone());
        }
    }
}

/// Members of enumerated types that another version of the schema does not have: type and id.
pub fn new_members(old: &Value, new: &Value) -> Vec<(String, String)> {
    let members = |schema: &Value, namespace: &str, name: &str| -> Option<Vec<String>> {
        let kind = schema.get(namespace)?.get("entityTypes")?.get(name)?.get("enum")?.as_array()?;
        Some(kind.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
    };
    let mut out = Vec::new();
    for (namespace, body) in new.as_object().into_iter().flatten() {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}::") };
        for name in body.get("entityTypes").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name) {
            let (Some(before), Some(after)) = (members(old, namespace, name), members(new, namespace, name)) else {
                continue;
            };
            out.extend(after.into_iter().filter(|id| !before.contains(id)).map(|id| (format!("{prefix}{name}"), id)));
        }
    }
    out
}

/// Attributes that are optional and were required: `User.age`, or with the name of an action
/// `Action::"x" context.age`.
pub fn now_optional(old: &Value, new: &Value) -> Vec<(String, String)> {
    let changes = schema_changes(old, new).into_iter().filter(|c| c.what == OPTIONAL);
    changes.filter_map(|c| c.about.rsplit_once('.').map(|(of, name)| (of.to_owned(), name.to_owned()))).collect()
}

/// One thing that a schema declares.
#[derive(PartialEq, Eq)]
struct Fact {
    /// What it is a part of.
    of: String,
    required: bool,
    text: String,
}

fn facts(schema: &Value) -> BTreeMap<String, Fact> {
    let mut out = BTreeMap::new();
    let mut add = |of: &str, name: String, required: bool, text: String| {
        out.insert(name, Fact { of: of.to_owned(), required, text });
    };
    for (namespace, body) in schema.as_object().into_iter().flatten() {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}::") };
        let section = |key: &str| body.get(key).and_then(Value::as_object).into_iter().flatten();
        for (name, kind) in section("entityTypes") {
            let name = format!("{prefix}{name}");
            let rest = ["memberOfTypes", "tags"].map(|key| kind.get(key).map(ToString::to_string));
            add("", name.clone(), false, format!("{rest:?}"));
            for id in texts(kind.get("enum")) {
                add(&name, format!("{name}::{id:?}"), false, String::new());
            }
            for (attribute, declared) in attributes(kind.get("shape")) {
                add(&name, format!("{name}.{attribute}"), required(declared), declared.to_string());
            }
        }
        for (name, action) in section("actions") {
            let applies = action.get("appliesTo");
            let about = format!("{prefix}Action::{name:?}");
            add("", about.clone(), false, format!("{:?}", action.get("memberOf").map(ToString::to_string)));
            for (role, key) in [("principal", "principalTypes"), ("resource", "resourceTypes")] {
                for kind in texts(applies.and_then(|a| a.get(key))) {
                    add(&about, format!("{about} with {role} {kind}"), false, String::new());
                }
            }
            for (attribute, declared) in attributes(applies.and_then(|a| a.get("context"))) {
                add(&about, format!("{about} context.{attribute}"), required(declared), declared.to_string());
            }
        }
        for (name, kind) in section("commonTypes") {
            add("", format!("{prefix}{name} (type)"), false, kind.to_string());
        }
    }
    out
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn attributes(record: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    record.and_then(|r| r.get("attributes")).and_then(Value::as_object).into_iter().flatten()
}

fn required(attribute: &Value) -> bool {
    attribute.get("required").and_then(Value::as_bool).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::SchemaFragment;

    fn shape(text: &str) -> Value {
        SchemaFragment::from_cedarschema_str(text).unwrap().0.to_json_value().unwrap()
    }

    #[test]
    fn changes_are_named() {
        let old = shape(
            r#"entity U { a: Long, b?: Bool }; entity R; action "x" appliesTo { principal: U, resource: R, context: { c: Long } };"#,
        );
        let new = shape(
            r#"entity U { b: Bool }; entity R; entity N { n: Long }; action "x", "y" appliesTo { principal: U, resource: R, context: { c?: Long } };"#,
        );
        let found: Vec<String> = schema_changes(&old, &new).iter().map(|c| format!("{} {}", c.about, c.what)).collect();
        let want = [
            "Action::\"x\" context.c is optional now",
            "Action::\"y\" is new",
            "N is new",
            "U.a is gone",
            "U.b is required now",
        ];
        assert_eq!(found, want);
        assert!(schema_changes(&old, &old).is_empty());
    }
}
