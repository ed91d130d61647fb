//! The image of a container: whether it is there, fetching it, and which one exactly it is.
//!
//! Presence is the engine's exit status, nothing that it prints. A failure is sorted by its cause, because
//! each has another way on; whatever it is, the user is told where to ask.

use std::path::PathBuf;

use super::launch::ContainerError;
use super::plan::ContainerPlan;
use crate::model::container::{Container, Recipe};
use crate::model::image::{ImageRef, Pull, ResolvedImage};
use crate::model::observe::{Event, Observer};
use crate::model::path::HostPath;
use crate::model::resolved::Variable;
use crate::process::{Cli, CliError};

/// The engine's program, with its variables.
pub(super) fn engine(container: &Container) -> Cli {
    with_variables(Cli::new(container.program.clone()), &container.variables)
}

/// The same for a plan.
pub(super) fn engine_of(plan: &ContainerPlan) -> Result<Cli, ContainerError> {
    program(plan.program.clone(), &plan.variables)
}

pub(super) fn program(
    path: PathBuf,
    variables: &std::collections::BTreeMap<String, Variable>,
) -> Result<Cli, ContainerError> {
    let path = HostPath::new(path).map_err(ContainerError::Path)?;
    Ok(with_variables(Cli::new(path), variables))
}

fn with_variables(call: Cli, variables: &std::collections::BTreeMap<String, Variable>) -> Cli {
    let known = variables.iter().filter(|(_, variable)| !variable.value.is_empty());
    known.fold(call, |call, (name, variable)| call.variable(name, &variable.value))
}

/// What the engine calls exactly the image of that name, if it has it. Nothing is fetched.
pub fn present(container: &Container, image: &ImageRef) -> Result<Option<String>, ContainerError> {
    Call { container, image: image.as_str() }.id()
}

/// Sees to it that `image` is there, and writes down which one exactly it is.
pub fn ensure(
    container: &Container,
    image: &mut ResolvedImage,
    observer: &dyn Observer,
) -> Result<(), ContainerError> {
    let ResolvedImage::Named { name, pull, id, .. } = image else { return Ok(()) };
    let call = Call { container, image: name.as_str() };
    if let Some(recipe) = &container.build {
        call.build(recipe, observer)?;
    }
    let present = call.id()?;
    *id = Some(match (present, *pull) {
        (Some(id), _) if container.build.is_some() => id,
        (Some(id), Pull::Missing | Pull::Never) => id,
        (None, Pull::Never) => return Err(call.failed(Cause::NotHere, String::new())),
        (_, Pull::Always) | (None, Pull::Missing) => {
            call.pull(observer)?;
            call.id()?.ok_or_else(|| call.failed(Cause::Unknown, "it is not there after all".to_owned()))?
        }
    });
    Ok(())
}

/// Why an image cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is not here, and may not be fetched.
    NotHere,
    /// No registry knows it.
    Unknown,
    /// The registry wants to know who asks.
    Authentication,
    /// The registry cannot be reached.
    Offline,
    /// There is none for this kind of machine.
    Platform,
    /// Something else, which the engine's own words say.
    Other,
}

impl Cause {
    /// What the words of an engine mean.
    pub(super) fn of(said: &str) -> Self {
        let said = said.to_lowercase();
        let any = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if any(&["no matching manifest", "exec format error", "does not match the detected host platform"]) {
            Self::Platform
        } else if any(&[
            "unauthorized",
            "authentication required",
            "no basic auth",
            "denied: requested access",
        ]) {
            Self::Authentication
        } else if any(&[
            "manifest unknown",
            "not found",
            "name unknown",
            "does not exist",
            "invalid reference",
        ]) {
            Self::Unknown
        } else if any(&[
            "no such host",
            "connection refused",
            "unreachable",
            "i/o timeout",
            "timeout",
            "dial tcp",
            "temporary failure",
            "server misbehaving",
        ]) {
            Self::Offline
        } else {
            Self::Other
        }
    }

    /// What is wrong, in the launcher's own words where the image is not there.
    pub(super) fn verdict(self) -> &'static str {
        match self {
            Self::Platform => "is for another kind of machine",
            _ => "is missing or could not be pulled",
        }
    }

    pub(super) fn remedy(self, image: &str) -> String {
        match self {
            Self::NotHere => "let it be fetched: `--pull missing`".to_owned(),
            Self::Unknown => format!("check the name `{image}`; an image of your own is built or imported first"),
            Self::Authentication => {
                "log in to the registry with `docker login` or `podman login`; a name that does not exist can \
                 look like this as well"
                    .to_owned()
            }
            Self::Offline => {
                "check the network; an image that is here already is used without it: `--pull missing`".to_owned()
            }
            Self::Platform => "name an image for this machine, or one for several: `--image`".to_owned(),
            Self::Other => "the engine's own words above say what is wrong".to_owned(),
        }
    }
}

struct Call<'a> {
    container: &'a Container,
    image: &'a str,
}

impl Call<'_> {
    /// What the engine calls the image, if it has it.
    fn id(&self) -> Result<Option<String>, ContainerError> {
        let format = "{{.Id}};{{.Architecture}}";
        let call = engine(self.container).args(["image", "inspect", "--format", format, self.image]);
        let finished = call.finish().map_err(ContainerError::Call)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if finished.status.success() {
            let said = text(&finished.stdout);
            let (id, architecture) = said.split_once(';').unwrap_or((&said, ""));
            self.check(architecture)?;
            return Ok(Some(id.to_owned()).filter(|id| !id.is_empty()));
        }
        let said = text(&finished.stderr);
        let missing = ["no such image", "image not known", "failed to find image", "no such object"];
        if missing.iter().any(|word| said.to_lowercase().contains(word)) {
            return Ok(None);
        }
        Err(ContainerError::of_engine(CliError::Failed {
            argv: call.argv(),
            status: finished.status,
            stderr: said,
        }))
    }

    /// Programs of another kind of machine would not run. Whoever asks for a platform by name knows why they do.
    fn check(&self, architecture: &str) -> Result<(), ContainerError> {
        let here = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let asked = self.container.flags.iter().any(|flag| flag.value.starts_with("--platform"));
        if asked || architecture.is_empty() || architecture == here {
            return Ok(());
        }
        let said = format!("it is for `{architecture}`, and this machine is `{here}`");
        Err(self.failed(Cause::Platform, said))
    }

    fn pull(&self, observer: &dyn Observer) -> Result<(), ContainerError> {
        let call = engine(self.container).args(["pull", self.image]);
        match self.watched(&call, observer) {
            Ok(()) => Ok(()),
            Err(CliError::Failed { stderr, .. }) => {
                let said = stderr.lines().last().unwrap_or_default().to_owned();
                Err(self.failed(Cause::of(&stderr), said))
            }
            Err(error) => Err(ContainerError::Call(error)),
        }
    }

    /// Builds the image from the project's recipe. What that runs is not in our sandbox but in the engine's own.
    fn build(&self, recipe: &Recipe, observer: &dyn Observer) -> Result<(), ContainerError> {
        let (file, context) = (recipe.file.to_string(), recipe.context.to_string());
        let call = engine(self.container).args(["build", "--tag", self.image, "--file", &file, &context]);
        match self.watched(&call, observer) {
            Ok(()) => Ok(()),
            Err(CliError::Failed { stderr, .. }) => {
                let said = stderr.lines().last().unwrap_or_default().to_owned();
                let (image, support) = (self.image.to_owned(), self.container.support.value.clone());
                Err(ContainerError::Build { image, file: recipe.file.clone().into(), said, support })
            }
            Err(error) => Err(ContainerError::Call(error)),
        }
    }

    /// Runs a call that takes long, as far as the caller wants it.
    fn watched(&self, call: &Cli, observer: &dyn Observer) -> Result<(), CliError> {
        let mut pulling = |line: &str| observer.event(&Event::Pulling { image: self.image, line });
        call.lines(&mut pulling, &|| observer.cancelled())
    }

    fn failed(&self, cause: Cause, said: String) -> ContainerError {
        let (image, support) = (self.image.to_owned(), self.container.support.value.clone());
        ContainerError::Image { image, cause, said, support }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::diagnosis::Diagnose as _;

    #[test]
    fn every_failure_names_where_to_ask_and_nobody_else() {
        use crate::model::container::SUPPORT;
        let causes = [
            Cause::NotHere,
            Cause::Unknown,
            Cause::Authentication,
            Cause::Offline,
            Cause::Platform,
            Cause::Other,
        ];
        for cause in causes {
            let image = "registry.example/x:1".to_owned();
            let error =
                ContainerError::Image { image, cause, said: String::new(), support: SUPPORT.to_owned() };
            let remedy = error.remedy().expect("there is always a way on");
            assert!(remedy.ends_with(&format!("visit {SUPPORT} if the issue persists")), "{remedy}");
            assert!(!format!("{error}{remedy}").contains('@') && !remedy.contains("gemini"), "{remedy}");
        }
    }

    #[test]
    fn each_cause_is_known_by_the_words_of_both_engines() {
        for (said, cause) in [
            ("Error response from daemon: manifest for a:b not found: manifest unknown", Cause::Unknown),
            (
                "Error response from daemon: pull access denied for x, repository does not exist or may require \
              'docker login': denied: requested access to the resource is denied",
                Cause::Authentication,
            ),
            (
                "reading manifest latest in r.example/x: unauthorized: access is not authorized",
                Cause::Authentication,
            ),
            ("Get \"https://r.example/v2/\": dial tcp: lookup r.example: no such host", Cause::Offline),
            ("pinging container registry r.example: connection refused", Cause::Offline),
            ("no matching manifest for linux/arm64/v8 in the manifest list entries", Cause::Platform),
            ("exec /.sandtable/init: exec format error", Cause::Platform),
            ("no space left on device", Cause::Other),
        ] {
            assert_eq!(Cause::of(said), cause, "{said}");
        }
    }
}
