//! Printing. Nothing outside this folder writes to the terminal.

#![expect(clippy::print_stderr, reason = "this is where polctl prints")]

use std::io::{IsTerminal, Write as _};

use miette::{GraphicalReportHandler, GraphicalTheme};

use super::args::{Format, OutputArgs};
use super::session::Failure;
use crate::report::{Report, human, json, markdown};
use crate::source::SourceMap;

fn wants_colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Prints a report on standard output; the exit code is the report's.
pub(super) fn report(report: &Report, map: &SourceMap, args: &OutputArgs) -> u8 {
    let text = match args.format {
        Format::Human => {
            let width = terminal_size::terminal_size().map_or(100, |(w, _)| usize::from(w.0));
            human(report, map, wants_colour(std::io::stdout().is_terminal()), width)
        }
        Format::Json => json(report, map),
        Format::Markdown => markdown(report, map),
    };
    match print(&text) {
        Ok(()) => report.exit_code,
        Err(code) => code.max(report.exit_code),
    }
}

/// Writes to standard output. A reader that went away is no reason to change the verdict; any
/// other failure is one, since a report that nobody got must not look like a pass.
pub(super) fn print(text: &str) -> Result<(), u8> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(_) => Err(super::exit::USAGE),
    }
}

/// Says on a terminal what takes long.
pub(super) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("polctl: {text} …");
    }
}

/// Says on a terminal how far something is, in the place of what was said before; empty: done.
pub(super) fn transient(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{text}\u{1b}[K");
    }
}

/// Whether standard output shows colours.
pub(super) fn colour_on_stdout() -> bool {
    wants_colour(std::io::stdout().is_terminal())
}

/// Says something on standard error that is no failure of this run.
pub(super) fn notice(text: &str) {
    eprintln!("{text}");
}

/// Prints a report on standard error, for commands whose own answer goes to standard output.
pub(super) fn report_on_stderr(report: &Report, map: &SourceMap) -> u8 {
    let width = terminal_size::terminal_size().map_or(100, |(w, _)| usize::from(w.0));
    eprint!("{}", human(report, map, wants_colour(std::io::stderr().is_terminal()), width));
    report.exit_code
}

/// A diagnostic as standard error shows it.
pub(super) fn rendered(diagnostic: &dyn miette::Diagnostic) -> String {
    let colour = wants_colour(std::io::stderr().is_terminal());
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    if GraphicalReportHandler::new_themed(theme).with_links(false).render_report(&mut text, diagnostic).is_err() {
        text = diagnostic.to_string();
    }
    text
}

/// Prints why a command ended without a report, on standard error.
pub(super) fn failure(failure: &Failure) -> u8 {
    eprint!("{}", rendered(failure));
    failure.exit_code()
}
