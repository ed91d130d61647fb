//! The file of `--report`. It is opened before anything runs, so that a bad name costs nothing, and
//! written when the command has ended. A file that was made for a run that never came is removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sandtable_sandbox::session::record::Outcome;

use crate::error::CliError;
use crate::ui::escape;

/// An open report file.
#[derive(Debug)]
pub(crate) struct Report {
    path: PathBuf,
    file: File,
    /// Set while the file is empty and our own.
    leftover: Option<PathBuf>,
}

impl Report {
    /// Opens the file. An existing one keeps its contents until the report is written.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::ReportOpen { path: path.to_owned(), source };
        let (file, leftover) = match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => (file, Some(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(path).map_err(failed)?, None)
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { path: path.to_owned(), file, leftover })
    }

    pub(crate) fn write(mut self, outcome: &Outcome) -> Result<(), CliError> {
        self.leftover = None;
        let written = self.replace(outcome);
        let (path, code) = (self.path.clone(), outcome.exit.code);
        written.map_err(|source| CliError::ReportWrite { path, code, source })
    }

    fn replace(&mut self, outcome: &Outcome) -> io::Result<()> {
        let mut text = escape::json(&serde_json::to_string_pretty(outcome).map_err(io::Error::other)?);
        text.push('\n');
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(path) = &self.leftover {
            // An empty file that cannot be removed is no reason to hide the error that led here.
            fs_err::remove_file(path).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::summary::tests::{busy, outcome};

    #[test]
    fn a_report_replaces_the_file_only_when_there_is_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("report.json");
        drop(Report::open(&path).expect("can be made"));
        assert!(!path.exists(), "nothing ran, nothing stays");
        fs_err::write(&path, "x".repeat(100_000)).expect("a fresh directory");
        drop(Report::open(&path).expect("is there"));
        assert_eq!(fs_err::metadata(&path).expect("is there").len(), 100_000);
        Report::open(&path).expect("is there").write(&outcome()).expect("room enough");
        let read: Outcome =
            serde_json::from_str(&fs_err::read_to_string(&path).expect("text")).expect("JSON");
        assert_eq!(read, outcome());
        sandtable_testkit::schema::check("report.json", &busy());
    }

    #[test]
    fn a_report_that_cannot_be_written_is_the_users_to_change() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for bad in [directory.path().to_owned(), directory.path().join("no/such/file")] {
            let refused = Report::open(&bad).expect_err("refused");
            assert_eq!(refused.exit(), crate::exit::Own::Input);
        }
    }
}
