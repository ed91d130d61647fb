//! The attack that takes two starts of one sandbox: its first command replaces the place of a mount in the private home by
//! a link, so that the next start would mount elsewhere. That start must be refused.
//!
//! The sandbox is kept between the two, so it has a data directory of its own and leaves no state in the user's.

use std::ffi::OsString;
use std::path::PathBuf;

use sandtable_app::config::Loaded;
use sandtable_protocol::invocation::Terminal;
use sandtable_protocol::probe::{Case, Class, Line};
use sandtable_sandbox::engine::LaunchError;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::id::SandboxName;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::{EngineChoice, Lifetime, MountAccess, MountRequest, Spec};
use sandtable_sandbox::session::{self, ExecRequest, Removal, Request, Sandboxes, Streams};

use super::attacks::Attack;
use super::trial::{Place, read_answers};
use crate::app::App;
use crate::error::CliError;

/// As it is listed.
const NAME: &str = "mount-point";
const ATTACK: &str = "box/F25";
const MARK: &str = "mark";

/// Makes both starts. Whatever keeps them from being made is told as the reason why it was not tried.
pub(super) fn attack(app: &App, place: &Place, engine: EngineChoice) -> Attack {
    let (got, detail) = Twice::prepare(app, place, engine)
        .and_then(|twice| twice.both())
        .unwrap_or_else(|error| (Class::Unsupported, chained(&error)));
    Attack { probe: NAME.to_owned(), attacks: vec![ATTACK.to_owned()], expected: Class::Blocked, got, detail }
}

/// One sandbox for two starts; removed when dropped.
struct Twice<'a> {
    app: &'a App,
    place: &'a Place,
    request: Loaded,
    sandboxes: Sandboxes,
    name: SandboxName,
    /// Where the mount belongs, and where the link leads.
    point: PathBuf,
    elsewhere: PathBuf,
}

impl<'a> Twice<'a> {
    fn prepare(app: &'a App, place: &'a Place, engine: EngineChoice) -> Result<Self, CliError> {
        let failed = |source| CliError::Trial { place: place.path().to_owned(), source };
        let [source, lent, data] = ["second", "lent", "data"].map(|name| place.path().join(name));
        for directory in [&source, &lent, &data] {
            fs_err::create_dir(directory).map_err(failed)?;
        }
        fs_err::write(lent.join(MARK), MARK).map_err(failed)?;
        let plain = place.request(engine);
        let home = app.caller.resolve(&plain)?.home;
        let home = home.as_path().join(format!("sandtable-doctor-{}", std::process::id()));
        let point = home.join("way/point");
        let shown = |source: PathBuf, target: &PathBuf| {
            let (target, access) = (Some(target.clone()), MountAccess::Read);
            Setting::default_value(MountRequest { source, target, access })
        };
        let mut mounts = plain.spec.mounts.clone();
        mounts.extend([shown(place.source(), &place.source()), shown(lent, &point)]);
        let lifetime = Setting::default_value(Lifetime::Keep);
        let directory = sandtable_app::config::plain(source).spec.directory;
        let request = Loaded { spec: Spec { mounts, lifetime, directory, ..plain.spec }, ..plain };
        let data = HostPath::new(data).map_err(|error| failed(std::io::Error::other(error)))?;
        let name = "doctor".parse().expect("a plain word is a name");
        let elsewhere = home.join("elsewhere");
        Ok(Self { app, place, request, sandboxes: Sandboxes::new(&data), name, point, elsewhere })
    }

    fn both(&self) -> Result<(Class, String), CliError> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let first = self.command("replace-mount-point", &[text(&self.point), text(&self.elsewhere)])?;
        let resolved = self.app.caller.resolve(&self.request)?;
        let streams = Streams::Caller(Terminal::Auto);
        let request = Request { command: &first, resolve_ms: 0, streams, observer: &() };
        session::run(&self.sandboxes, resolved, Some(&self.name), request)?;
        let done = self.answer()?;
        if done.class != Class::Works {
            return Ok((Class::Unsupported, format!("the place could not be replaced: {}", done.detail)));
        }
        let second = self.command("read-mark", &[MARK.to_owned(), text(&self.elsewhere.join(MARK))])?;
        let host = self.app.environment().host()?;
        let request = ExecRequest {
            command: &second,
            directory: None,
            terminal: Terminal::Auto,
            observer: &(),
            host: &host,
        };
        match session::exec(&self.sandboxes, &self.name, request) {
            Ok(_) => self.answer().map(|line| (line.class, line.detail)),
            Err(error) => self.refused(error.into()),
        }
    }

    /// A start that names the place was refused because of it; any other failure shows nothing.
    fn refused(&self, error: CliError) -> Result<(Class, String), CliError> {
        let of_launch = match &error {
            CliError::Session(error) => {
                matches!(**error, session::SessionError::Launch(LaunchError::Native(_)))
            }
            _ => false,
        };
        let text = chained(&error);
        if of_launch && text.contains(&format!("`{}`", self.point.display())) {
            Ok((Class::Blocked, format!("the next start was refused: {text}")))
        } else {
            Err(error)
        }
    }

    fn command(&self, probe: &str, args: &[String]) -> Result<Vec<OsString>, CliError> {
        let cases = [Case { probe: probe.to_owned(), args: args.to_vec() }];
        let failed = |source| CliError::Trial { place: self.place.path().to_owned(), source };
        self.place.write_cases(&cases).map_err(failed)?;
        Ok(self.place.command())
    }

    fn answer(&self) -> Result<Line, CliError> {
        let line = read_answers(self.place)?.into_iter().next();
        Ok(line.unwrap_or_else(|| Line {
            case: NAME.to_owned(),
            class: Class::Unsupported,
            detail: "no answer".to_owned(),
        }))
    }
}

impl Drop for Twice<'_> {
    fn drop(&mut self) {
        // An overlay leaves a directory that only this knows how to remove. There may be no sandbox yet.
        let _none_or_left = session::remove(&self.sandboxes, &self.name, Removal::Forced);
    }
}
