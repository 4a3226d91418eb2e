//! Where policy directories lie in their repository, for the formats that a forge reads.

use std::path::Path;

use super::session::{Failure, variable};
use crate::report::Places;

/// The folder that holds the pages of `docs/`: of this version at its home, unless the variable
/// names another place.
const DOCS_VARIABLE: &str = "POLCTL_DOCS_URL";

/// The directories of the new and the old version, seen from the root of the repository.
pub(super) fn places(new: &Path, old: &Path) -> Result<Places, Failure> {
    Ok(Places { new: seen_from_root(new)?, old: seen_from_root(old)?, docs: docs()? })
}

fn docs() -> Result<Option<String>, Failure> {
    let home = env!("CARGO_PKG_REPOSITORY");
    let own = (!home.is_empty()).then(|| format!("{home}/blob/v{}/docs", env!("CARGO_PKG_VERSION")));
    let Some(url) = variable(DOCS_VARIABLE)? else { return Ok(own) };
    let plain = |c: char| c.is_ascii_graphic() && !"()<>[]\"'`\\#?".contains(c);
    if !(url.starts_with("https://") || url.starts_with("http://")) || !url.chars().all(plain) {
        return Err(Failure::usage(
            format!("`{DOCS_VARIABLE}` is `{url}`, which is no address of a folder"),
            "give an address such as `https://git.example.org/tools/polctl/docs`, or unset the variable",
        ));
    }
    Ok(Some(url.trim_end_matches('/').to_owned()))
}

/// A directory seen from the workspace of GitHub Actions if it is in there, else from the root
/// of the repository around it, else as it was given.
fn seen_from_root(dir: &Path) -> Result<String, Failure> {
    let workspace = variable("GITHUB_WORKSPACE")?;
    let Ok(full) = dir.canonicalize() else { return Ok(with_slashes(dir)) };
    let workspace = workspace.and_then(|path| Path::new(&path).canonicalize().ok());
    let workspace = workspace.filter(|root| full.starts_with(root));
    let repository = || full.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    let inside = workspace.or_else(repository).and_then(|root| full.strip_prefix(root).ok().map(with_slashes));
    Ok(inside.unwrap_or_else(|| with_slashes(dir)))
}

/// A path with `/` between its parts, without parts that say nothing.
fn with_slashes(path: &Path) -> String {
    let parts = path.components().filter(|part| !matches!(part, std::path::Component::CurDir));
    let text = parts.collect::<std::path::PathBuf>().to_string_lossy().replace('\\', "/");
    if text == "/" { String::new() } else { text }
}
