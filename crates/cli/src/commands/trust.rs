//! `sandtable trust`: consent to a project's file as it is now, so that it may widen the policy.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config::file::ConfigFile;
use sandtable_app::config::trust::{Consent, Trust};
use sandtable_app::config::{self, ConfigError};
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::error::CliError;
use crate::ui::{escape, table};

/// What `trust` takes.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct TrustArgs {
    /// The project's file or directory; the project around the current directory when left out
    file: Option<PathBuf>,
    /// Show what you consented to
    #[arg(long, conflicts_with_all = ["file", "revoke"])]
    list: bool,
    /// Take the consent back
    #[arg(long)]
    revoke: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    trusted: &'a [Consent],
}

pub(crate) fn run(app: &App, args: &TrustArgs) -> Result<ExitCode, CliError> {
    let trust = Trust::new(&app.environment().data()?);
    let consents = if args.list {
        trust.list().map_err(ConfigError::from)?
    } else if args.revoke {
        return revoke(app, &trust, args);
    } else {
        let file = config::project(args.file.as_deref())?;
        let consent = trust.record(&file).map_err(ConfigError::from)?;
        app.ui.say(&format!(
            "trusted as it is now: {} ({}); a change needs your consent again",
            escape::name(&consent.path.to_string_lossy()),
            escape::line(&said(&file))
        ));
        vec![consent]
    };
    if args.json {
        app.ui.json(&Answer { schema: SCHEMA, trusted: &consents })?;
    } else if args.list {
        let row = |consent: &Consent| [consent.sha256.clone(), escape::name(&consent.path.to_string_lossy())];
        app.ui.answer(&table::aligned(&consents.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the file says, so that the user sees what was consented to.
fn said(file: &ConfigFile) -> String {
    let lines = file.places.keys().map(|key| format!("{} = {}", key.word(), file.layer.shown(*key)));
    lines.collect::<Vec<_>>().join(", ")
}

/// Consent to a file that is gone can be taken back too, so it is looked for by its path alone.
fn revoke(app: &App, trust: &Trust, args: &TrustArgs) -> Result<ExitCode, CliError> {
    let path = config::project_path(args.file.as_deref())?;
    let shown = escape::name(&path.to_string_lossy());
    if !trust.revoke(&path).map_err(ConfigError::from)? {
        return Err(CliError::NotTrusted { path });
    }
    app.ui.say(&format!("no longer trusted: {shown}"));
    if args.json {
        app.ui.json(&Answer { schema: SCHEMA, trusted: &[] })?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_app::config::file;

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs_err::write(place.path().join(file::PROJECT_FILE), "rm = true").expect("a fresh directory");
        let file = file::project(place.path()).expect("fine").expect("there");
        let data =
            sandtable_sandbox::model::path::HostPath::new(place.path().join("data")).expect("absolute");
        let consent = Trust::new(&data).record(&file).expect("writable");
        sandtable_testkit::schema::check("trust.json", &Answer { schema: SCHEMA, trusted: &[consent] });
    }
}
