//! The options that only container engines know.

use std::ffi::OsString;

use clap::Args;
use sandtable_sandbox::model::container::{Build, FlagGuard};
use sandtable_sandbox::model::image::{ImageRef, Pull};
use sandtable_sandbox::model::setting::Origin;

use super::{flag, words};
use crate::config;
use crate::config::key::Key;
use crate::config::layer::Layer;
use crate::config::value::Raw;

/// What a container engine is told.
#[derive(Debug, Default, Args)]
pub(super) struct ContainerArgs {
    /// What the command sees as its system: an image by the name that docker or podman knows; natively a directory, a tar archive or an OCI layout by its path
    #[arg(long, value_name = "IMAGE")]
    image: Option<ImageRef>,
    /// Whether the image is fetched
    #[arg(long, value_name = "WHEN", value_parser = words(Pull::ALL, Pull::word))]
    pull: Option<Pull>,
    /// Build the image first, from the project's `.sandtable/Dockerfile` or `.llxprt/sandbox.Dockerfile`
    #[arg(long)]
    build: bool,
    /// Show a port of the container on this machine's loopback address
    #[arg(short = 'p', long = "publish", value_name = "PORT[:PORT]")]
    ports: Vec<OsString>,
    /// Options for docker or podman in one text, such as '--shm-size=1g --ulimit nofile=1024'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    engine_flags: Option<OsString>,
    /// The command of a proxy that is the only way out, such as 'node proxy.js': run beside the sandbox, it listens on port 8877
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    proxy_command: Option<OsString>,
    /// Allow options for docker or podman that undo the sandbox, like `--privileged`
    #[arg(long)]
    dangerously_engine_flags: bool,
    /// Where to send people whose image cannot be had
    #[arg(long, value_name = "ADDRESS")]
    support_url: Option<OsString>,
}

impl ContainerArgs {
    pub(super) fn add(self, layer: &mut Layer) -> Result<(), config::Error> {
        layer.container.image = flag(Key::Image, self.image);
        layer.container.pull = flag(Key::Pull, self.pull);
        let allow = self.dangerously_engine_flags.then_some(FlagGuard::Allow);
        layer.container.flag_guard = flag(Key::AllowFlags, allow);
        layer.container.build = flag(Key::Build, self.build.then_some(Build::Project));
        let line =
            |key: Key, text: Option<OsString>| text.map(|text| (key, Raw::from_variable(key.kind(), text)));
        let flags = line(Key::EngineFlags, self.engine_flags);
        let proxy = line(Key::ProxyCommand, self.proxy_command);
        let ports = (!self.ports.is_empty()).then_some((Key::Publish, Ok(Raw::List(self.ports))));
        let support = self.support_url.map(|text| (Key::SupportUrl, Ok(Raw::Text(text))));
        for (key, raw) in flags.into_iter().chain(proxy).chain(ports).chain(support) {
            let name = key.flag();
            raw.and_then(|raw| layer.set(key, raw, &Origin::Flag { name: name.to_owned() }))
                .map_err(|source| config::Error::Flag { name, source })?;
        }
        Ok(())
    }
}
