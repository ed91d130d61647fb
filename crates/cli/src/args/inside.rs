//! The options that say what is seen inside besides the workspace.

use std::ffi::OsString;

use clap::Args;
use sandtable_sandbox::model::setting::Origin;

use crate::config;
use crate::config::key::Key;
use crate::config::layer::Layer;
use crate::config::value::Raw;

/// What the command sees of the host.
#[derive(Debug, Default, Args)]
pub(super) struct InsideArgs {
    /// Show a file or directory of the host inside: read-only, writable, or copy-on-write
    #[arg(short = 'v', long = "mount", value_name = "SRC[:DST[:ro|rw|cow]]")]
    pub(super) mounts: Vec<OsString>,
    /// Show a path, or a bundle of credentials like `gcloud` or `aws`, read-only at its own place
    #[arg(long, value_name = "PATH|NAME")]
    pub(super) expose: Vec<OsString>,
    /// Show a tool of ours, like `node` or `ninja@1.13`, with its programs on PATH; made when it is not there yet
    #[arg(long = "tool", value_name = "NAME[@VERSION]")]
    pub(super) tools: Vec<OsString>,
    /// Show an agent's own settings, like `claude` or `codex`, as a private copy-on-write view
    #[arg(long = "agent-home", value_name = "NAME|PATH")]
    pub(super) agent_homes: Vec<OsString>,
    /// Hide what fits in the workspace: a name at any depth, or a path from its top, with `*` and `**`
    #[arg(long, value_name = "PATTERN")]
    pub(super) hide: Vec<OsString>,
    /// Set a variable for the command, or pass yours on by its name
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<OsString>,
    /// Set the variables that a file lists, one NAME=VALUE per line
    #[arg(long = "env-file", value_name = "FILE")]
    pub(super) env_files: Vec<OsString>,
}

impl InsideArgs {
    pub(super) fn add(self, layer: &mut Layer) -> Result<(), config::Error> {
        let lists = [
            (Key::Mounts, self.mounts),
            (Key::Expose, self.expose),
            (Key::Tools, self.tools),
            (Key::AgentHome, self.agent_homes),
            (Key::Hide, self.hide),
            (Key::Env, self.env),
            (Key::EnvFile, self.env_files),
        ];
        for (key, items) in lists {
            let name = key.flag();
            layer
                .set(key, Raw::List(items), &Origin::Flag { name: name.to_owned() })
                .map_err(|source| config::Error::Flag { name, source })?;
        }
        Ok(())
    }
}
