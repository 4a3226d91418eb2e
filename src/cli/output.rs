//! Printing. Nothing outside this folder writes to the terminal.

#![expect(clippy::print_stderr, reason = "this is where polctl prints")]

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use miette::{GraphicalReportHandler, GraphicalTheme};

use super::args::{Format, OutputArgs};
use super::places::places;
use super::session::{Failure, variable};
use crate::report::{Places, Report, github, human, json, markdown, sarif};
use crate::source::SourceMap;

fn wants_colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Prints a report whose files lie in the current directory. See [`report_at`].
pub(super) fn report(report: &Report, map: &SourceMap, args: &OutputArgs) -> u8 {
    match places(Path::new("."), Path::new(".")) {
        Ok(places) => report_at(report, map, &places, args),
        Err(error) => failure(&error).max(report.exit_code),
    }
}

/// Prints a report on standard output and writes it to the files that were asked for. The exit
/// code is the report's in every format; a report that nobody got is no pass.
pub(super) fn report_at(report: &Report, map: &SourceMap, places: &Places, args: &OutputArgs) -> u8 {
    let mut code = report.exit_code;
    for file in &args.output {
        let text = rendered_as(file.format, report, map, places, None);
        if let Err(error) = write(&file.path, &text) {
            code = code.max(failure(&error));
        }
    }
    if args.step_summary
        && let Err(error) = append_summary(&markdown(report, map))
    {
        code = code.max(failure(&error));
    }
    let text = rendered_as(args.format, report, map, places, Some(std::io::stdout().is_terminal()));
    match print(&text) {
        Ok(()) => code,
        Err(worse) => worse.max(code),
    }
}

/// A report in a format. `terminal`: `None` for a file, else whether standard output is one.
fn rendered_as(format: Format, report: &Report, map: &SourceMap, places: &Places, terminal: Option<bool>) -> String {
    match format {
        Format::Human => {
            let columns = terminal.and_then(|_| terminal_size::terminal_size());
            let width = columns.map_or(100, |(width, _)| usize::from(width.0));
            human(report, map, wants_colour(terminal == Some(true)), width)
        }
        Format::Json => json(report, map),
        Format::Markdown => markdown(report, map),
        Format::Sarif => sarif(report, map, places),
        Format::Github => github(report, map, places),
    }
}

/// Writes a file by a rename: whoever reads it sees the old one or the new one as a whole.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| Failure::Write { what: format!("`{}`", path.display()), source };
    match std::fs::metadata(path) {
        // Also a link to one, which a rename would replace.
        Ok(meta) if meta.is_dir() => return Err(failed(std::io::ErrorKind::IsADirectory.into())),
        // A device or a pipe is written to; a name that was renamed over would be another thing.
        Ok(meta) if !meta.is_file() => return std::fs::write(path, text).map_err(failed),
        _ => {}
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // A report is no secret; the default would be readable by nobody else.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.tempfile_in(dir).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Appends to the summary of the step: earlier commands of the step may have written there.
fn append_summary(text: &str) -> Result<(), Failure> {
    let path = summary_file()?;
    let failed = |source| Failure::Write { what: format!("the summary of the job, `{}`", path.display()), source };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
    file.write_all(format!("{text}\n").as_bytes()).map_err(failed)
}

fn summary_file() -> Result<PathBuf, Failure> {
    let name = variable("GITHUB_STEP_SUMMARY")?.ok_or_else(|| {
        Failure::usage(
            "`--step-summary` needs the variable `GITHUB_STEP_SUMMARY`",
            "GitHub Actions and its relatives set it; elsewhere write the comment to a file: `--output markdown=FILE`",
        )
    })?;
    Ok(PathBuf::from(name))
}

impl OutputArgs {
    /// Refuses what cannot be written, before anything is judged.
    pub(super) fn ready(&self) -> Result<(), Failure> {
        for (at, file) in self.output.iter().enumerate() {
            if self.output.iter().take(at).any(|other| other.path == file.path) {
                return Err(Failure::usage(
                    format!("two outputs would be written to `{}`", file.path.display()),
                    "give each `--output` a file of its own",
                ));
            }
        }
        if self.step_summary { summary_file().map(drop) } else { Ok(()) }
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
