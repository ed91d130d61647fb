//! On what a tool is made: this machine in native sandboxes, or an image of a container engine in containers of it.
//!
//! Only what is typed counts here. The engine that files and variables name is the one that sandboxes run on, and a tool
//! that is made natively can be used on it as well.

use clap::Args;
use sandtable_app::config;
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::model::image::{ImageRef, Pull};
use sandtable_sandbox::model::resolved::Identity;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{EngineChoice, Spec};
use sandtable_sandbox::resolve::{self, Engaged};
use sandtable_tools::build::{BuildImage, BuildRoot, ImageError, build_image};
use sandtable_tools::plan::Libc;

use crate::app::App;
use crate::args::words;
use crate::error::{CliError, ToolError};
use crate::ui::escape;
use crate::ui::observer::{TerminalObserver, Verbosity};

/// Engines that can make tools.
const ENGINES: &[EngineChoice] = &[EngineChoice::Native, EngineChoice::Docker, EngineChoice::Podman];

/// Where steps run.
#[derive(Debug, Args)]
pub(super) struct EngineArgs {
    /// What runs the steps; a container engine runs them on an image, and makes the tool for it
    #[arg(long, value_name = "ENGINE", value_parser = words(ENGINES))]
    engine: Option<EngineChoice>,
    /// The image that steps see as their system, by the name that docker or podman knows
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageRef>,
    /// Whether the image is fetched
    #[arg(long, value_name = "WHEN", requires = "image", value_parser = words(Pull::ALL))]
    pull: Option<Pull>,
}

impl EngineArgs {
    /// The image that was asked for, there and looked at; nothing if the tool is to be made natively.
    pub(super) fn image(&self, app: &App) -> Result<Option<BuildImage>, CliError> {
        let Some(engaged) = self.engaged(app)? else { return Ok(None) };
        let host = app.environment().host()?;
        let identity = Identity { uid: host.uid, gid: host.gid };
        let found = build_image(
            &app.sandboxes()?,
            engaged,
            identity,
            &TerminalObserver::new(app.ui, Verbosity::Normal),
        );
        Ok(Some(found.map_err(|error| match error {
            // What keeps a sandbox from being made is said as `run` says it.
            ImageError::Sandbox(error) => CliError::from(error),
            other => ToolError::Image(other).into(),
        })?))
    }

    /// The engine and the image, not looked at yet.
    fn engaged(&self, app: &App) -> Result<Option<Engaged>, CliError> {
        match (self.engine, &self.image) {
            (None | Some(EngineChoice::Native), None) => return Ok(None),
            (Some(engine), None) => return Err(ToolError::NoImage(engine).into()),
            (_, Some(_)) => {}
        }
        let directory = app.environment().data()?.as_path().to_owned();
        let spec = self.on(config::plain(directory).spec);
        let engaged = resolve::engaged(&spec, &app.environment().host()?, &MachineFacts)?;
        // Named by its path, an image is native's business, and there it is a root file system.
        Ok(Some(engaged.ok_or(ToolError::NativeImage)?))
    }

    /// `spec` with the engine and the image that were asked for.
    pub(super) fn on(&self, spec: Spec) -> Spec {
        let flag = |name: &str| Origin::Flag { name: name.to_owned() };
        let engine = self.engine.map(|engine| Setting::new(engine, flag("--engine")));
        let image = self.image.clone().map(|image| Setting::new(image, flag("--image")));
        let mut spec = Spec { engine: engine.unwrap_or(spec.engine), image: image.or(spec.image), ..spec };
        if let Some(pull) = self.pull {
            spec.container.pull = Setting::new(pull, flag("--pull"));
        }
        spec
    }

    /// What was asked for, for people who only want to know what would be done.
    pub(super) fn shown(&self) -> Option<String> {
        let image = self.image.as_ref()?;
        let engine = self.engine.map_or("container engine's", EngineChoice::word);
        Some(format!("made on  {engine} image {}\n", escape::line(image.as_str())))
    }
}

/// Prints the progress of tools that are made on `root`; an image is named.
pub(super) fn observer(app: &App, root: &BuildRoot) -> TerminalObserver {
    let observer = TerminalObserver::new(app.ui, Verbosity::Normal);
    match root {
        BuildRoot::Image(image) => observer.on(&image.made_on.to_string()),
        BuildRoot::Machine | BuildRoot::WholeMachine | BuildRoot::Tree { .. } => observer,
    }
}

/// The root that an image is, and the C library that a tool for it needs.
pub(super) fn root(image: Option<BuildImage>) -> (Option<BuildRoot>, Option<Libc>) {
    let libc = image.as_ref().and_then(BuildImage::libc);
    (image.map(|image| BuildRoot::Image(Box::new(image))), libc)
}
