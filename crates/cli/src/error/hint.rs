//! What to do next about an error, where that is known.

use std::path::Path;

use sandtable_app::config::ConfigError;
use sandtable_app::config::file::{FileError, PROJECT_FILE};
use sandtable_app::config::key::{Key, Kind};
use sandtable_app::config::mount::MountError;
use sandtable_app::config::narrow::Widening;
use sandtable_app::config::trust::Standing;
use sandtable_app::config::value::ValueError;
use sandtable_app::env::{self, EnvironmentError};
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::spec::MountAccess;
use sandtable_sandbox::session;
use sandtable_tools::build::ImageError;

use super::tool::ToolError;
use crate::ui::escape;

/// What the library knows, and for a failed launch where to learn more.
pub(super) fn session_hint(error: &session::SessionError) -> Option<String> {
    let more = "`sandtable doctor` looks for what stands in the way";
    match (error, error.remedy()) {
        (session::SessionError::Launch(error), Some(remedy)) if !error.is_of_the_machine() => Some(remedy),
        (session::SessionError::Launch(_), Some(remedy)) => Some(format!("{remedy}\n{more}")),
        (session::SessionError::Launch(_), None) => Some(more.to_owned()),
        (session::SessionError::CommandNotFound { program }, _)
            if program.contains([' ', ';', '|', '&', '>']) =>
        {
            Some(
                "no shell reads the command; to run a line of shell: `sandtable run -- sh -c '…'`".to_owned(),
            )
        }
        (_, remedy) => remedy,
    }
}

pub(super) fn tool_hint(error: &ToolError) -> Option<String> {
    match error {
        ToolError::Nothing | ToolError::Assemble(_) => {
            Some("`sandtable tool recipes` lists what comes with the program".to_owned())
        }
        ToolError::Make(error) => error.remedy(),
        ToolError::Image(ImageError::NoShell(_)) => {
            Some("name an image with a shell and the usual small programs: `--image`".to_owned())
        }
        ToolError::NoImage(_) => Some("name one: `--image NAME`".to_owned()),
        ToolError::NativeImage => Some(
            "name an image that docker or podman knows, with `--engine`; `sandtable tool test --rootfs` makes tools on \
             a directory, an archive or a layout"
                .to_owned(),
        ),
        ToolError::NotKept(request) => Some(format!("make it: `sandtable tool install {request}`")),
        ToolError::NoSuchTool(_) | ToolError::Several { .. } => {
            Some("`sandtable tool ls` lists what is kept, with keys".to_owned())
        }
        ToolError::NoConsent(_) => {
            Some("read what it asks for, then answer on a terminal or pass `--yes`".to_owned())
        }
        _ => None,
    }
}

pub(super) fn config_hint(error: &ConfigError) -> Option<String> {
    match error {
        ConfigError::Environment(EnvironmentError::NoHome) => {
            Some(format!("set `{}` to a directory of your own", env::XDG_DATA_HOME))
        }
        ConfigError::Variable { name, source: ValueError::SwitchedOff(_) } => {
            Some(format!("unset `{name}`, or run the command without sandtable"))
        }
        ConfigError::Variable { source, .. } | ConfigError::Flag { source, .. } => value_hint(source),
        ConfigError::Agent(contradiction) => {
            Some(format!("leave the flag out, or unset the {}", contradiction.variable))
        }
        ConfigError::UnknownVariable { meant: Some(meant), .. } => Some(format!("did you mean `{meant}`?")),
        ConfigError::UnknownVariable { name, .. } => Some(format!("unset `{name}`")),
        ConfigError::File(error) => file_hint(error),
        ConfigError::Widening(widening) => Some(widening_hint(widening)),
        ConfigError::UnknownProfile { known, .. } => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            Some(format!(
                "one of {}; `[profiles.NAME]` in your configuration file defines another",
                known.join(", ")
            ))
        }
        ConfigError::NoProjectFile(_) => Some(format!("go to a project that has a `{PROJECT_FILE}`")),
        ConfigError::Trust(_) => {
            Some("remove the file if it is not yours, and trust the project anew".to_owned())
        }
        ConfigError::CurrentDirectory(_) => {
            Some("change to a directory that exists, or pass `-C DIR`".to_owned())
        }
        ConfigError::EnvFile(_) => Some("a line is `NAME=VALUE`, empty, or a comment".to_owned()),
        ConfigError::Environment(EnvironmentError::NotAPath { .. }) => None,
    }
}

fn widening_hint(widening: &Widening) -> String {
    let flag = flag_for(widening.key, &widening.asked);
    let alone = format!("remove the line, or, if you want it, pass `{flag}` yourself");
    let trust = ["sandtable", "trust", &widening.path.to_string_lossy()].map(str::to_owned);
    let trust = escape::command(&trust);
    match widening.standing {
        Standing::Changed => {
            format!("the file was changed after you trusted it: read it again, then `{trust}`\n{alone}")
        }
        _ => format!("{alone}\nread the file and consent to it as it is: `{trust}`"),
    }
}

fn file_hint(error: &FileError) -> Option<String> {
    match error {
        FileError::UnknownKey { meant: Some(meant), .. } => Some(format!("did you mean `{meant}`?")),
        FileError::UnknownKey { .. } => {
            let known: Vec<String> = Key::ALL.iter().map(|key| format!("`{}`", key.word())).collect();
            Some(format!("the keys are {}", known.join(", ")))
        }
        FileError::Value { source, .. } => value_hint(source),
        _ => None,
    }
}

fn value_hint(error: &ValueError) -> Option<String> {
    match error {
        ValueError::Relative(_) => Some("write an absolute path, or `~/…` in your own file".to_owned()),
        ValueError::Mount(error) => Some(mount_hint(error)),
        ValueError::Variable(_) => {
            Some("a variable is `NAME=VALUE`, or `NAME` for your own value".to_owned())
        }
        _ => None,
    }
}

/// What a mount should have looked like.
fn mount_hint(error: &MountError) -> String {
    match error {
        MountError::RelativeTarget { target, .. } if target.parse::<MountAccess>().is_ok() => {
            format!("the mode is the third part: `SRC:DST:{target}`")
        }
        MountError::TooManyParts(_) => r"a colon that belongs to a path is written `\:`".to_owned(),
        _ => "a mount is `SRC[:DST[:ro|rw|cow]]`".to_owned(),
    }
}

/// The option that says on the command line what a project's file may not say.
fn flag_for(key: Key, asked: &str) -> String {
    match key.kind() {
        Kind::Switch => key.flag().to_owned(),
        Kind::Line | Kind::List | Kind::Words => format!("{} …", key.flag()),
        Kind::Text | Kind::Path => format!("{} {asked}", key.flag()),
    }
}

/// What brings a directory to one of its two states. It is found by the name that it had.
pub(super) fn half_done(directory: &Path, began: &Path) -> String {
    if directory.starts_with(began) {
        return "fix the problem in the warning above, then try again".to_owned();
    }
    format!(
        "rename it back to `{}` and run `sandtable ls`, which restores or completes it; then it can be moved",
        began.display()
    )
}
