//! `sandtable policy why`: which line of the policy decides about a path, a host or a variable.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config;
use sandtable_app::config::key::Key;
use sandtable_app::config::layer::Layer;
use sandtable_app::why::{self, Subject, Why};
use sandtable_sandbox::model::path::BoxPath;
use serde::Serialize;

use super::SCHEMA;
use crate::app::App;
use crate::args::{Creates, SettingArgs, switched_on};
use crate::error::CliError;
use crate::ui::{escape, table};

/// What `policy why` takes.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// A path (`./README`), a host (`example.org`, `10.0.0.1:80`) or a variable (`LANG`)
    #[arg(value_name = "PATH|HOST|VARIABLE")]
    subject: String,
    #[command(flatten)]
    settings: SettingArgs<Creates>,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    #[serde(flatten)]
    why: &'a Why,
}

pub(super) fn run(app: &App, args: WhyArgs) -> Result<ExitCode, CliError> {
    let json = if args.json { switched_on(Key::Json) } else { Layer::default() };
    let loaded = config::load(app.environment(), args.settings.layer()?.or(json))?;
    let resolved = app.caller.resolve(&loaded)?;
    let is_set = |name: &str| app.environment().get(name).is_some();
    let directory = &loaded.spec.directory.value;
    let known = |name: &str| is_set(name) || resolved.environment.contains_key(name);
    let why = match Subject::of(&args.subject, directory, known) {
        Some(Subject::Path(path)) => {
            let home = app.environment().home()?;
            let (inside, link) = place(&path, directory, home.as_ref().map(AsRef::as_ref))?;
            let mut why = why::path(&inside, &resolved);
            why.notes.splice(0..0, link);
            why
        }
        Some(Subject::Host(host)) => why::host(&host, &resolved.network),
        Some(Subject::Variable(name)) => why::variable(&name, &resolved, is_set),
        None => return Err(unclear(&args.subject)),
    };
    if loaded.output.json.value {
        app.ui.json(&Answer { schema: SCHEMA, why: &why })?;
    } else {
        app.ui.answer(&render(&why))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn unclear(word: &str) -> CliError {
    CliError::Usage {
        text: format!(
            "`{}` is neither a file here, nor a variable, nor the name of a host",
            escape::line(word)
        ),
        hint: Some(format!("write a path as `./{word}`, a host as `{word}:443`", word = escape::line(word))),
    }
}

/// The absolute place that is asked about, and a word about the link that led there: a sandbox has the same
/// links, so that the place behind them decides.
fn place(path: &Path, directory: &Path, home: Option<&Path>) -> Result<(BoxPath, Option<String>), CliError> {
    let written = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => directory.join(path),
    };
    let real = real(&written);
    let note = (real != written && !written.ends_with("."))
        .then(|| format!("`{}` leads to `{}`", written.display(), real.display()));
    BoxPath::new(&real)
        .map(|inside| (inside, note))
        .map_err(|error| CliError::Usage { text: error.to_string(), hint: None })
}

/// `path` without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let (mut rest, mut at) = (Vec::new(), path);
    loop {
        if let Ok(real) = fs_err::canonicalize(at) {
            return rest.iter().rev().fold(real, |path: PathBuf, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return path.to_owned() };
        rest.push(name);
        at = parent;
    }
}

fn render(why: &Why) -> String {
    let cell = |name: &str, text: &str| [name.to_owned(), escape::line(text)];
    let mut rows =
        vec![cell(why.kind, &why.subject), cell("inside", why.verdict), cell("because", &why.because)];
    rows.extend(why.origin.iter().map(|origin| cell("set by", &origin.to_string())));
    rows.extend(why.notes.iter().map(|note| cell("note", note)));
    rows.extend(why.change.iter().map(|change| cell("to change", change)));
    table::aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_testkit::fixtures::{resolved, spec};

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let resolved = resolved(&spec());
        let inside = |path: &str| BoxPath::new(path).expect("absolute");
        for why in [
            why::path(&inside("/repo/x"), &resolved),
            why::path(&inside("/nowhere"), &resolved),
            why::host("example.org", &resolved.network),
            why::variable("GH_TOKEN", &resolved, |_| true),
        ] {
            sandtable_testkit::schema::check("policy-why.json", &Answer { schema: SCHEMA, why: &why });
        }
    }
}
