//! Where the texts of a report lie, as a forge names them: seen from the root of the repository.
//!
//! Findings name files relative to their policy directory. A forge that marks lines wants paths
//! of its repository, and can mark the version under review only, never the old one.

use crate::diag::{CodeInfo, Finding};
use crate::source::{SourceMap, Span};

/// The policy directories of both versions, and where the documentation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The directory of the version under review, from the root of the repository, with `/`;
    /// empty for the root itself.
    pub new: String,
    /// The same for the old version.
    pub old: String,
    /// Address of the folder that holds the pages of `docs/`, without a slash at the end.
    pub docs: Option<String>,
}

impl Places {
    /// The path of the file that a span is in; `None` where the map does not have it.
    pub(super) fn path(&self, span: Span, map: &SourceMap) -> Option<String> {
        let file = map.get(span.file).filter(|file| !file.name.is_empty())?;
        Some(joined(if file.origin.is_some() { &self.old } else { &self.new }, &file.name))
    }

    /// The path of the same file in the version under review.
    pub(super) fn path_under_review(&self, span: Span, map: &SourceMap) -> Option<String> {
        map.get(span.file).map(|file| joined(&self.new, &file.name))
    }

    /// The page that explains a code.
    pub(super) fn page(&self, info: &CodeInfo) -> Option<String> {
        self.docs.as_ref().map(|docs| format!("{docs}/{}", info.page()))
    }
}

fn joined(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{}/{name}", dir.trim_end_matches('/')) }
}

/// Whether the version under review has a file of the name that this one has.
pub(super) fn is_under_review(span: Span, map: &SourceMap) -> bool {
    let name = map.get(span.file).map(|file| &file.name);
    map.files().any(|file| file.origin.is_none() && Some(&file.name) == name)
}

/// A place that a forge can mark.
pub(super) enum Mark {
    /// These characters.
    Region(Span),
    /// The file as a whole: the finding is about a line that only the old version has.
    File(Span),
}

/// What to mark for a finding: its own place if the version under review has it, else the first
/// related one there, else the file.
pub(super) fn mark(finding: &Finding, map: &SourceMap) -> Mark {
    let under_review = |span: &Span| map.get(span.file).is_some_and(|file| file.origin.is_none());
    let related = finding.related.iter().map(|other| other.span);
    match std::iter::once(finding.span).chain(related).find(under_review) {
        Some(span) => Mark::Region(span),
        None => Mark::File(finding.span),
    }
}

/// First and last position of a span: line and column, both from 1; the last column is the one
/// behind the last character.
pub(super) fn region(span: Span, map: &SourceMap) -> ((usize, usize), (usize, usize)) {
    map.get(span.file).map_or(((1, 1), (1, 1)), |file| (file.position(span.start), file.position(span.end)))
}
