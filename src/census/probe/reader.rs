//! From a format and bytes to what they hold: the one way in.

use super::table::{Format, Shape};
use super::{
    Material, Sign, ini, json, kerberos, key, lines, rules, shadow, shell, sniff, sqlite, store, toml, tree, xml, yaml,
};

/// Largest file that the readers of structured formats open. Larger ones are unreadable.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Most credentials told of one file; one more says that there are more.
pub const MAX_MATERIALS: usize = 1000;

/// What bytes at a place hold, one for each credential, in the order of the file.
///
/// An empty file is one [`Sign::Empty`]; a file that holds something else than credentials is
/// nothing. What cannot be read as its format is [`Sign::Unreadable`] and counts as live. `now`
/// is in Unix seconds. For a socket the bytes are empty.
pub fn read(format: Format, bytes: &[u8], now: i64) -> Vec<Material> {
    let rules = format.rules();
    let one = |sign| vec![Material::new(rules.kind, sign)];
    if format.is_socket() {
        return if bytes.is_empty() { one(Sign::Live) } else { Vec::new() };
    }
    if bytes.trim_ascii().is_empty() {
        return one(Sign::Empty);
    }
    let gathers = matches!(format.shape, Shape::Shell | Shape::Transcript | Shape::Opaque | Shape::Sqlite);
    if bytes.len() > MAX_BYTES && !gathers {
        return one(Sign::unreadable("it is larger than 8 MiB, which no file of this format should be"));
    }
    if let Some(sign) = store::sealed(bytes) {
        return one(sign);
    }
    let mut found = match format.shape {
        Shape::Ini | Shape::Json | Shape::Yaml | Shape::Toml | Shape::Xml | Shape::Words | Shape::Netrc => {
            structured(format, bytes, now)
        }
        Shape::Key => key::read(bytes, rules.kind, now),
        Shape::KeyStore => key::store(bytes, rules.kind),
        Shape::Urls => lines::urls(bytes, rules.kind),
        Shape::Columns => lines::columns(bytes, rules.column, rules.kind, now),
        Shape::Token => lines::tokens(bytes, rules.kind, now),
        Shape::Shell => shell::read(bytes, rules.kind, now),
        Shape::Transcript => sniff::gathered(bytes, rules.kind, now),
        Shape::Ticket => kerberos::cache(bytes, now),
        Shape::Keytab => kerberos::keytab(bytes),
        Shape::Shadow => shadow::read(bytes),
        Shape::Sqlite => sqlite::read(bytes, rules),
        Shape::Store => store::read(bytes, rules),
        Shape::Opaque => one(rules.holds.clone().unwrap_or(Sign::Live)),
        Shape::Socket => Vec::new(),
    };
    found.sort_by_key(|material| material.line);
    if found.len() > MAX_MATERIALS {
        found.truncate(MAX_MATERIALS);
        found.push(Material::new(
            rules.kind,
            Sign::unreadable("it holds more than 1000 credentials; the rest is not listed"),
        ));
    }
    found
}

/// Formats with keys and values.
fn structured(format: Format, bytes: &[u8], now: i64) -> Vec<Material> {
    let rules = format.rules();
    let fail = |why: &str| vec![Material::new(rules.kind, Sign::unreadable(why))];
    let Some(text) = text(bytes) else { return fail("it is not text in UTF-8") };
    let text = text.as_ref();
    let entries = match format.shape {
        Shape::Ini => Ok(ini::entries(text)),
        Shape::Words => Ok(lines::words(text)),
        Shape::Netrc => Ok(lines::netrc(text)),
        Shape::Json => json::entries(text),
        Shape::Yaml => yaml::entries(text),
        Shape::Toml => toml::entries(text),
        _ => xml::entries(text),
    };
    let Ok(mut entries) = entries else {
        return fail(match format.shape {
            Shape::Json => "it is not valid JSON",
            Shape::Yaml => "it is not valid YAML, or it is too deep",
            Shape::Toml => "it is not valid TOML",
            _ => "it is not valid XML, or it is too deep",
        });
    };
    tree::spread_urls(&mut entries);
    let mut found = rules::judge(&entries, rules, now);
    // Keys may be written into any text file, between the lines of the format.
    // One that is a value has been told already.
    let told: std::collections::BTreeSet<_> = found.iter().filter_map(|material| material.line).collect();
    let keys = key::blocks(text.as_bytes(), false);
    let new = keys.into_iter().filter(|key| key.line.is_none_or(|line| !told.contains(&line)));
    found.extend(new.map(|key| Material { kind: rules.kind, ..key }));
    found
}

/// The text of a file: UTF-8 with or without a mark, or UTF-16 with one.
fn text(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let wide = |unit: fn([u8; 2]) -> u16, rest: &[u8]| {
        let units = rest
            .chunks_exact(2)
            .map(|pair| unit([pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0)]));
        char::decode_utf16(units).collect::<Result<String, _>>().ok().map(std::borrow::Cow::Owned)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => std::str::from_utf8(rest).ok().map(Into::into),
        _ => std::str::from_utf8(bytes).ok().map(Into::into),
    }
}
