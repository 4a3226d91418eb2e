//! Documents that are not what their format says.

use std::fmt;

use miette::Diagnostic;

use super::shown;

/// The documents that are parsed strictly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The DSSE envelope.
    Envelope,
    /// The payload about a policy set.
    Payload,
    /// The payload of an approval.
    Approval,
    /// The trust file.
    Trust,
    /// The rollback state.
    State,
}

impl Document {
    const fn prefix(self) -> &'static str {
        match self {
            Document::Envelope => "envelope",
            Document::Payload => "payload",
            Document::Approval => "approval",
            Document::Trust => "trust",
            Document::State => "state",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Document::Envelope => "the envelope",
            Document::Payload => "the signed payload",
            Document::Approval => "the approval",
            Document::Trust => "the trust file",
            Document::State => "the rollback state",
        }
    }
}

/// What can be wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Not JSON in UTF-8, or more than one value.
    Syntax {
        /// 1-based.
        line: usize,
        /// 1-based, in bytes.
        column: usize,
    },
    /// Over the size cap.
    TooLarge {
        /// The cap in bytes.
        cap: usize,
    },
    /// A list over its cap.
    TooMany {
        /// The most items that are read.
        cap: usize,
    },
    /// A key stands twice in one object.
    DuplicateKey,
    /// A key that the format does not have.
    UnknownField,
    /// A key that must be there.
    MissingField,
    /// A value of another type.
    WrongType {
        /// With its article.
        expected: &'static str,
    },
    /// A value of the right type that is not allowed.
    Value {
        /// With its article.
        expected: &'static str,
    },
}

/// A document that is not what its format says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The document.
    pub document: Document,
    /// The place in it, e.g. `files[2].sha256`; empty for the whole.
    pub path: String,
    /// What is wrong there.
    pub problem: Problem,
}

impl Malformed {
    pub(in crate::sign) fn new(document: Document, path: impl Into<String>, problem: Problem) -> Self {
        Malformed { document, path: path.into(), problem }
    }

    const fn suffix(&self) -> &'static str {
        match self.problem {
            Problem::Syntax { .. } => "syntax",
            Problem::TooLarge { .. } => "too-large",
            Problem::TooMany { .. } => "too-many",
            Problem::DuplicateKey => "duplicate-key",
            Problem::UnknownField => "unknown-field",
            Problem::MissingField => "missing-field",
            Problem::WrongType { .. } => "wrong-type",
            Problem::Value { .. } => "value",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = self.document.name();
        let path = shown(&self.path);
        match &self.problem {
            Problem::Syntax { line, column } => {
                write!(f, "{document} is not one JSON value (line {line}, column {column})")
            }
            Problem::TooLarge { cap } => write!(f, "{document} is larger than {cap} bytes, the most that is read"),
            Problem::TooMany { cap } => write!(f, "`{path}` in {document} has more than {cap} items"),
            Problem::DuplicateKey => write!(f, "the key `{path}` stands twice in {document}"),
            Problem::UnknownField => write!(f, "{document} has the unknown key `{path}`"),
            Problem::MissingField => write!(f, "{document} lacks the key `{path}`"),
            Problem::WrongType { expected } if path.is_empty() => write!(f, "{document} is not {expected}"),
            Problem::WrongType { expected } | Problem::Value { expected } => {
                write!(f, "`{path}` in {document} is not {expected}")
            }
        }
    }
}

impl std::error::Error for Malformed {}

impl Diagnostic for Malformed {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{}-{}", self.document.prefix(), self.suffix())))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(match self.document {
            Document::Envelope | Document::Payload => {
                "the envelope was not written by `polctl sign`, or was changed since, or by a newer polctl; sign again"
            }
            Document::Approval => "write approvals with `polctl approve`; they are not edited by hand",
            Document::Trust => "docs/signing.md has the format; every key in it must be one that polctl knows",
            Document::State => {
                "polctl does not guess what it has seen: restore the file, or remove it after setting `floor.sequence` in the trust file to the sequence in use"
            }
        }))
    }
}
