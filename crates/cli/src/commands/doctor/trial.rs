//! A sandbox launched for trial: a small source of our own, the executable itself as its command, and a
//! directory to which it writes what it found. All of it is gone afterwards.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sandtable_app::config::{self, Loaded};
use sandtable_app::env;
use sandtable_protocol::invocation::Terminal;
use sandtable_protocol::probe::Line;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::{EngineChoice, Lifetime, MountAccess, MountRequest, Spec, Strictness};
use sandtable_sandbox::session::{self, Request, Streams};

pub(super) use super::attacks::Attack;
use super::attacks::{self, Stage};
use super::{Depth, Trial, again};
use crate::app::App;
use crate::error::CliError;

const CASES: &str = "cases.json";
const ANSWERS: &str = "answers.json";
const PROGRAM: &str = "probe";

/// Launches a sandbox, tries what there is to try, and cleans up.
pub(super) fn launch(app: &App, engine: EngineChoice, depth: Depth) -> Result<Trial, CliError> {
    let base = app.environment().get(env::TMPDIR).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let failed = |source| CliError::Trial { place: base.clone(), source };
    let place = Place::make(&base).map_err(failed)?;
    let resolved = app.caller.resolve(&place.request(engine))?;
    let stage = Stage::set(&place.0, &resolved, app.environment()).map_err(failed)?;
    let cases = match depth {
        Depth::Launch => Vec::new(),
        Depth::Attack => stage.cases(),
    };
    place.write_cases(&cases).map_err(failed)?;
    let command = place.command();
    let streams = Streams::Caller(Terminal::Auto);
    let request = Request { command: &command, resolve_ms: app.elapsed_ms(), streams, observer: &() };
    let outcome = session::run(&app.sandboxes()?, resolved, None, request)?;
    if outcome.exit.code != 0 {
        return Err(CliError::TrialCommand { code: outcome.exit.code });
    }
    let mut attacks = attacks::judged(&cases, read_answers(&place)?);
    if depth == Depth::Attack {
        attacks.push(again::attack(app, &place, engine));
    }
    Ok(Trial { enforcement: outcome.enforcement, start_ms: outcome.timings_ms.start, attacks })
}

/// What the command of [`Place::command`] found.
pub(super) fn read_answers(place: &Place) -> Result<Vec<Line>, CliError> {
    let failed = |source| CliError::Trial { place: place.0.clone(), source };
    let answers = fs_err::read_to_string(place.out().join(ANSWERS)).map_err(failed)?;
    let lines = answers.lines().map(serde_json::from_str::<Line>).collect::<Result<Vec<_>, _>>();
    lines.map_err(CliError::Json)
}

/// A directory of our own, gone when dropped.
pub(super) struct Place(PathBuf);

impl Place {
    fn make(base: &Path) -> std::io::Result<Self> {
        let base = fs_err::canonicalize(base)?;
        let name = format!("sandtable-doctor-{}", std::process::id());
        let place = Self(base.join(name));
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700).create(&place.0)?;
        fs_err::create_dir(place.source())?;
        fs_err::create_dir(place.out())?;
        fs_err::copy(std::env::current_exe()?, place.source().join(PROGRAM))?;
        Ok(place)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the attempts of the list in the source, and answers into the directory that it may write.
    pub(super) fn command(&self) -> Vec<OsString> {
        let (source, out) = (self.source(), self.out());
        let words =
            [source.join(PROGRAM), "__probe".into(), "--each".into(), source.join(CASES), out.join(ANSWERS)];
        words.map(PathBuf::into_os_string).into()
    }

    pub(super) fn source(&self) -> PathBuf {
        self.0.join("source")
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    pub(super) fn write_cases(&self, cases: &[sandtable_protocol::probe::Case]) -> std::io::Result<()> {
        fs_err::write(self.source().join(CASES), serde_json::to_vec(cases)?)
    }

    /// Every default, but that a missing control is told instead of ending the trial, and nothing is kept.
    pub(super) fn request(&self, engine: EngineChoice) -> Loaded {
        let (out, plain) = (self.out(), config::plain(self.source()));
        let spec = Spec {
            engine: Setting::default_value(engine),
            strictness: Setting::default_value(Strictness::BestEffort),
            lifetime: Setting::default_value(Lifetime::Discard),
            mounts: vec![Setting::default_value(MountRequest {
                source: out.clone(),
                target: Some(out),
                access: MountAccess::Write,
            })],
            ..plain.spec
        };
        Loaded { spec, ..plain }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is a temporary file like any other.
        let _left_behind = fs_err::remove_dir_all(&self.0);
    }
}
