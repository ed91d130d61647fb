//! The options that only container engines know.

use std::ffi::OsString;

use clap::Args;
use sandtable_app::config::ConfigError;
use sandtable_app::config::key::Key;
use sandtable_app::config::layer::Layer;
use sandtable_app::config::value::{Raw, ValueError};
use sandtable_sandbox::model::container::{Build, FlagGuard};
use sandtable_sandbox::model::image::{ImageRef, Pull};
use sandtable_sandbox::model::seatbelt::SeatbeltProfile;
use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::spec::EngineChoice;

use super::{flag, help, words};

/// Which engine runs the sandbox, and its image.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::CONTAINERS)]
pub(super) struct ContainerArgs {
    /// Engine: `auto`, `native`, `docker`, `podman`, `seatbelt`
    #[arg(long, value_name = "ENGINE", hide_possible_values = true, value_parser = words(EngineChoice::ALL, EngineChoice::word))]
    engine: Option<EngineChoice>,
    /// Image that the command sees as its system
    ///
    /// With docker and podman the name of an image; natively the path of a directory, a tar archive or an
    /// OCI layout.
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageRef>,
    /// When to fetch the image: `missing`, `never`, `always`
    #[arg(long, value_name = "WHEN", hide_possible_values = true, hide_short_help = true, value_parser = words(Pull::ALL, Pull::word))]
    pull: Option<Pull>,
    /// Build the image first, from `.sandtable/Dockerfile` or `.llxprt/sandbox.Dockerfile`
    #[arg(long, hide_short_help = true)]
    build: bool,
    /// More options for docker or podman, such as '--shm-size=1g --ulimit nofile=1024'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, hide_short_help = true)]
    engine_flags: Option<OsString>,
    /// Allow options for docker or podman that undo the sandbox, such as `--privileged`
    #[arg(long, hide_short_help = true)]
    dangerously_engine_flags: bool,
    /// Address to show when an image is not available
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    support_url: Option<OsString>,
    /// With engine `seatbelt`: which files and connections are open
    ///
    /// One of `permissive-open`, `permissive-closed`, `permissive-proxied`, `restrictive-open`,
    /// `restrictive-closed` and `restrictive-proxied`.
    #[arg(long, value_name = "PROFILE", hide_possible_values = true, hide_short_help = true, value_parser = words(SeatbeltProfile::ALL, SeatbeltProfile::word))]
    seatbelt_profile: Option<SeatbeltProfile>,
}

/// What of the network only container engines have.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::NETWORK)]
pub(super) struct ContainerNetworkArgs {
    /// Publish a port of the container on the loopback address
    #[arg(short = 'p', long = "publish", value_name = "PORT[:PORT]")]
    ports: Vec<OsString>,
    /// Command of a proxy that is the only way out, such as 'node proxy.js'
    ///
    /// It runs beside the sandbox and listens on port 8877.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true, hide_short_help = true)]
    proxy_command: Option<OsString>,
}

impl ContainerArgs {
    pub(super) fn add(self, layer: &mut Layer) -> Result<(), ConfigError> {
        layer.engine = flag(Key::Engine, self.engine);
        layer.seatbelt_profile = flag(Key::SeatbeltProfile, self.seatbelt_profile);
        layer.container.image = flag(Key::Image, self.image);
        layer.container.pull = flag(Key::Pull, self.pull);
        let allow = self.dangerously_engine_flags.then_some(FlagGuard::Allow);
        layer.container.flag_guard = flag(Key::AllowFlags, allow);
        layer.container.build = flag(Key::Build, self.build.then_some(Build::Project));
        set(layer, Key::EngineFlags, self.engine_flags)?;
        set(layer, Key::SupportUrl, self.support_url)
    }
}

impl ContainerNetworkArgs {
    pub(super) fn add(self, layer: &mut Layer) -> Result<(), ConfigError> {
        if !self.ports.is_empty() {
            add_raw(layer, Key::Publish, Ok(Raw::List(self.ports)))?;
        }
        set(layer, Key::ProxyCommand, self.proxy_command)
    }
}

/// One text, read as a variable of the same key would be.
fn set(layer: &mut Layer, key: Key, text: Option<OsString>) -> Result<(), ConfigError> {
    text.map_or(Ok(()), |text| add_raw(layer, key, Raw::from_variable(key.kind(), text)))
}

fn add_raw(layer: &mut Layer, key: Key, raw: Result<Raw, ValueError>) -> Result<(), ConfigError> {
    let name = key.flag();
    raw.and_then(|raw| layer.set(key, raw, &Origin::Flag { name: name.to_owned() }))
        .map_err(|source| ConfigError::Flag { name, source })
}
