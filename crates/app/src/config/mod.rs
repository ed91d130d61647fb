//! Configuration: flags, variables and files become one request whose every value knows where it came
//! from.
//!
//! Strongest first: flag, `SANDTABLE_*`, `LLXPRT_SANDBOX_*`, `SANDBOX_*`, the project's file, the profile,
//! the user's file, the default. A project's file may only narrow what holds without it ([`narrow`]), unless
//! the user consented to it ([`trust`]).

use std::io;
use std::path::{Path, PathBuf};

use sandtable_protocol::invocation::Terminal;
use sandtable_sandbox::model::choice::choice;
use sandtable_sandbox::model::profile::{BuiltIn, Profile};
use sandtable_sandbox::model::resolved::Warning;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{EnvRequest, Spec};

use crate::env::{self, Environment};

mod agent;
mod define;
mod environment;
pub mod file;
pub mod form;
mod item;
pub mod key;
pub mod layer;
pub mod mount;
mod names;
pub mod narrow;
mod profiles;
mod row;
mod shellwords;
mod table;
pub mod trust;
pub mod value;
mod variables;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use environment::EnvFileError;
use file::{ConfigFile, FileError};
use key::Key;
use layer::Layer;
use narrow::Widening;
use profiles::Defined;
use trust::{Standing, Trust, TrustError};
use value::ValueError;

/// Everything that was said, put together.
#[derive(Debug)]
pub struct Loaded {
    pub spec: Spec,
    /// The settings that the request was made from.
    pub layer: Layer,
    pub output: Output,
    pub warnings: Vec<Warning>,
}

/// What a command shows, and where.
#[derive(Clone, Debug)]
pub struct Output {
    pub dry_run: Setting<bool>,
    pub json: Setting<bool>,
    pub quiet: Setting<bool>,
    pub report: Option<Setting<PathBuf>>,
    /// True forces a terminal, false refuses one.
    pub tty: Option<Setting<bool>>,
    pub detach: Setting<bool>,
    pub summary: Setting<SummaryLength>,
}

choice! {
    /// How much is printed when a command has ended: the short summary has no list of changes and no suggestions.
    SummaryLength { Full = "full", Short = "short" }
}

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Environment(#[from] env::EnvironmentError),
    #[error("option `{name}` has no usable value")]
    Flag { name: &'static str, source: ValueError },
    #[error("variable `{name}` has no usable value")]
    Variable { name: &'static str, source: ValueError },
    #[error(transparent)]
    Agent(#[from] agent::Contradiction),
    #[error("unknown variable `{name}`")]
    UnknownVariable { name: String, meant: Option<&'static str> },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    EnvFile(#[from] EnvFileError),
    #[error(transparent)]
    Widening(#[from] Box<Widening>),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("there is no profile `{name}`, which {origin} asks for")]
    UnknownProfile { name: Profile, origin: Origin, known: Vec<String> },
    #[error("there is no project file `{}`", .0.display())]
    NoProjectFile(PathBuf),
    #[error("there is no current directory")]
    CurrentDirectory(#[source] io::Error),
}

/// Puts the layers together for a sandbox.
pub fn load(environment: &Environment, flags: Layer) -> Result<Loaded, ConfigError> {
    let strong = agent::joined(flags, variables::layer(environment)?)?;
    let User { layer: user, profiles } = user_settings(environment)?;
    let directory = directory(&strong, &user)?;
    let strong = anchored(Layer { directory: Some(directory), ..strong })?;
    let without = settled(&strong, Layer::default(), &user, &profiles);
    let settled = match project_file(&strong)? {
        None => without?,
        Some(project) => {
            // A profile that only the project knows is none without it. The user's own go first.
            let without = match without {
                Err(ConfigError::UnknownProfile { .. }) => {
                    let none = Some(Setting::default_value(BuiltIn::None.into()));
                    settled(&Layer { profile: none, ..strong.clone() }, Layer::default(), &user, &profiles)?
                }
                without => without?,
            };
            let mut known = project.profiles.clone();
            known.extend(profiles);
            let with = settled(&strong, project.layer.clone(), &user, &known)?;
            let standing = Trust::new(&environment.data()?).standing(&project)?;
            if standing != Standing::Trusted {
                narrow::check(&project, &without, &with)
                    .map_err(|widening| Box::new(Widening { standing, ..*widening }))?;
            }
            with
        }
    };
    let env = variables_of(&settled)?;
    let mut loaded = finished(settled, env);
    loaded.spec.container.debug = variables::debug_port(environment)?;
    loaded.warnings = variables::warnings(environment);
    Ok(loaded)
}

/// What holds in `directory` when nobody says anything, not even in a file.
pub fn plain(directory: PathBuf) -> Loaded {
    let directory = Some(Setting::default_value(directory));
    finished(Layer { directory, ..profiles::defaults() }, Vec::new())
}

/// What a command that concerns no project shows, and where.
pub fn output(environment: &Environment, flags: Layer) -> Result<Output, ConfigError> {
    let strong = flags.or(variables::layer(environment)?);
    let User { layer: user, profiles } = user_settings(environment)?;
    settled(&strong, Layer::default(), &user, &profiles).map(Layer::output)
}

/// The names of the profiles that are known without a project: ours, and those of the user's file if it can be read.
pub fn profile_names(environment: &Environment) -> Vec<String> {
    profiles::names(&user_settings(environment).unwrap_or_default().profiles)
}

/// Where the project's file is or would be: `given` itself if it has the name of such a file, else that of the
/// project around `given` or around the current directory.
pub fn project_path(given: Option<&Path>) -> Result<PathBuf, ConfigError> {
    let given = given.map_or_else(current, absolute)?;
    let named = given.file_name().is_some_and(|name| name == file::PROJECT_FILE);
    let path = match given.parent() {
        Some(parent) if named => {
            fs_err::canonicalize(parent).ok().map(|parent| parent.join(file::PROJECT_FILE))
        }
        _ => file::project_path(&given),
    };
    path.ok_or(ConfigError::NoProjectFile(given))
}

/// The project's file at that place.
pub fn project(given: Option<&Path>) -> Result<ConfigFile, ConfigError> {
    let path = project_path(given)?;
    file::project_at(&path)?.ok_or(ConfigError::NoProjectFile(path))
}

/// What the user's file says.
#[derive(Default)]
struct User {
    layer: Layer,
    profiles: Defined,
}

fn user_settings(environment: &Environment) -> Result<User, ConfigError> {
    let Some(path) = environment.user_file()? else { return Ok(User::default()) };
    let home = environment.home()?;
    let file = file::user(&path, home.as_ref().map(AsRef::<Path>::as_ref))?;
    Ok(file.map(|file| User { layer: file.layer, profiles: file.profiles }).unwrap_or_default())
}

fn project_file(strong: &Layer) -> Result<Option<ConfigFile>, ConfigError> {
    let directory = strong.directory.as_ref().expect("the caller has settled it");
    Ok(file::project(&directory.value)?)
}

/// The directory a project's file is looked for in: it cannot be the file's own choice.
fn directory(strong: &Layer, user: &Layer) -> Result<Setting<PathBuf>, ConfigError> {
    match strong.directory.as_ref().or(user.directory.as_ref()) {
        None => Ok(Setting::default_value(current()?)),
        Some(given) => Ok(Setting::new(absolute(&given.value)?, given.origin.clone())),
    }
}

/// All layers on top of each other.
fn settled(strong: &Layer, project: Layer, user: &Layer, known: &Defined) -> Result<Layer, ConfigError> {
    let upper = strong.clone().or(project);
    let named = upper.profile.as_ref().or(user.profile.as_ref());
    let profile = match named {
        None => Layer::default(),
        Some(named) => profiles::profile(&named.value, known).ok_or_else(|| ConfigError::UnknownProfile {
            name: named.value.clone(),
            origin: named.origin.clone(),
            known: profiles::names(known),
        })?,
    };
    Ok(upper.or(profile).or(user.clone()).or(profiles::defaults()))
}

/// The variables of the command: given ones before those of files before those that are passed on.
fn variables_of(layer: &Layer) -> Result<Vec<Setting<EnvRequest>>, ConfigError> {
    let mut env = layer.env.clone();
    for Setting { value: path, origin } in &layer.env_files {
        // Within a file the last line of a name counts.
        let read = environment::file(path)?.into_iter().rev();
        let read = read.map(|request| Setting::new(request, origin.clone())).collect();
        env = form::united(env, read, |a, b| a.name == b.name);
    }
    Ok(form::united(env, layer.pass_env.clone(), |a, b| a.name == b.name))
}

fn finished(layer: Layer, env: Vec<Setting<EnvRequest>>) -> Loaded {
    let (spec, output) = (layer.clone().spec(), layer.clone().output());
    Loaded { spec: Spec { env, ..spec }, layer, output, warnings: Vec::new() }
}

/// Paths from the command line and the environment start from the current directory.
fn anchored(mut layer: Layer) -> Result<Layer, ConfigError> {
    let here = current();
    let anchor = |path: &Path| match &here {
        _ if path.is_absolute() => Ok(path.to_owned()),
        Ok(here) => Ok(here.join(path)),
        Err(_) => Err(ValueError::Relative(path.to_owned())),
    };
    for key in Key::ALL {
        // An image whose absolute path cannot be written as text stays as it was written.
        if let Err(ValueError::Relative(_)) = layer.anchor(*key, &anchor) {
            current()?;
        }
    }
    Ok(layer)
}

fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(current()?.join(path)) }
}

fn current() -> Result<PathBuf, ConfigError> {
    std::env::current_dir().map_err(ConfigError::CurrentDirectory)
}

impl Output {
    /// The terminal that the command gets.
    pub fn terminal(&self) -> Terminal {
        match self.tty.as_ref().map(|tty| tty.value) {
            None => Terminal::Auto,
            Some(true) => Terminal::Always,
            Some(false) => Terminal::Never,
        }
    }

    /// Whether somebody asked for JSON on the command line itself.
    pub fn json_by_flag(&self) -> bool {
        self.json.value && matches!(self.json.origin, Origin::Flag { .. })
    }
}
