//! `polctl diff --cedar`: two files of hand-written Cedar.

use std::path::Path;

use super::args::DiffArgs;
use super::outcome::Outcome;
use super::places::places;
use super::session::Failure;
use crate::analyze::diff_plain;
use crate::compile::{PlainReader, PlainTexts};
use crate::diag::{Code, Finding, sort};
use crate::source::{FileId, SourceMap};

/// Largest file of Cedar that is read, in bytes. Over it is an error, never a cut.
const MAX_CEDAR_BYTES: u64 = 64 << 20;

pub(super) fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let cedar = &args.cedar;
    let Some(schema) = &cedar.schema else {
        return Err(Failure::usage("`--cedar` needs `--schema`", "give the schema that the policies are written for"));
    };
    let (mut map, mut findings) = (SourceMap::new(), Vec::new());
    let mut load = |path: &Path, what: &str| load(path, what, &mut map);
    // The new version first: what its findings point at stands on top.
    let new_schema = cedar.new_schema.as_deref().map(|path| load(path, "schema")).transpose()?;
    let new = load(Path::new(&args.new), "policies")?;
    let new_links = cedar.new_links.as_deref().map(|path| load(path, "links")).transpose()?;
    let old_schema = load(schema, "schema")?;
    let old = load(Path::new(&args.old), "policies")?;
    let old_links = cedar.old_links.as_deref().map(|path| load(path, "links")).transpose()?;
    let mut reader = PlainReader::default();
    reader.prepare(&[old, new], &map);
    let texts = PlainTexts { policies: new, schema: new_schema.unwrap_or(old_schema), links: new_links };
    let new = reader.read(texts, &map, &mut findings);
    let texts = PlainTexts { policies: old, schema: old_schema, links: old_links };
    let old = reader.read(texts, &map, &mut findings);
    if let (Some(mut old), Some(mut new)) = (old, new) {
        reader.settle(&mut old, &mut new);
        findings.extend(diff_plain(&old, &new, &mut args.engine.symbolic())?);
    }
    sort(&mut findings);
    if let Some(dir) = &cedar.counterexamples {
        write(dir, &findings)?;
    }
    let outcome = Outcome { map, findings, rules: None, policy_ids: (None, None) };
    // Files are named as they were given, from the current directory.
    let here = places(Path::new("."), Path::new("."))?;
    Ok(outcome.report("diff", Some((args.old.clone(), args.new.clone())), &here, &args.output))
}

fn load(path: &Path, what: &str, map: &mut SourceMap) -> Result<FileId, Failure> {
    let name = path.display().to_string();
    let read = |source| Failure::Read { what: format!("the {what} `{name}`"), source };
    let size = std::fs::metadata(path).map_err(read)?.len();
    if size > MAX_CEDAR_BYTES {
        return Err(Failure::usage(
            format!("the {what} `{name}` has {size} bytes"),
            format!("at most {MAX_CEDAR_BYTES} bytes are read; split the file"),
        ));
    }
    let bytes = std::fs::read(path).map_err(read)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the {what} `{name}` is not UTF-8 text"), "save the file as UTF-8"))?;
    Ok(map.add(&name, None, &text))
}

/// Writes each newly permitted request beside its entities, numbered as the findings are.
fn write(dir: &Path, findings: &[Finding]) -> Result<(), Failure> {
    let failed = |source| Failure::Write { what: format!("the counterexamples in `{}`", dir.display()), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    let requests =
        findings.iter().filter(|f| f.code == Code::WIDENING).filter_map(|f| f.evidence.as_ref()?.request.as_ref());
    for (number, request) in requests.enumerate() {
        for (name, value) in [("request", &request.request), ("entities", &request.entities)] {
            let text = serde_json::to_string_pretty(value).map_err(|e| failed(e.into()))?;
            std::fs::write(dir.join(format!("{}.{name}.json", number + 1)), text + "\n").map_err(failed)?;
        }
    }
    Ok(())
}
