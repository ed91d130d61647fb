//! The options that say what is seen inside besides the workspace.

use std::ffi::OsString;

use clap::Args;
use sandtable_app::config::ConfigError;
use sandtable_app::config::key::Key;
use sandtable_app::config::layer::Layer;
use sandtable_app::config::value::Raw;
use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::spec::{GitConfig, Secrets, SshAgent};

use super::{flag, help, words};

/// What the command sees of the host.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = help::VISIBILITY)]
pub(super) struct InsideArgs {
    /// Show a file or directory of the host; read-only by default
    #[arg(short = 'v', long = "mount", value_name = "SRC[:DST[:ro|rw|cow]]")]
    pub(super) mounts: Vec<OsString>,
    /// Show a path, or credentials such as `gcloud`, read-only
    #[arg(long, value_name = "PATH|NAME")]
    pub(super) expose: Vec<OsString>,
    /// Show a tool, such as `node` or `ninja@1.13`, on PATH
    ///
    /// A tool that is not there yet is built from its recipe first.
    #[arg(long = "tool", value_name = "NAME[@VERSION]")]
    pub(super) tools: Vec<OsString>,
    /// Show an agent's settings, such as `claude`, copy-on-write
    #[arg(long = "agent-home", value_name = "NAME|PATH")]
    pub(super) agent_homes: Vec<OsString>,
    /// Hide files of the workspace: a name, or a path from its top
    ///
    /// A name counts at any depth. `*` stands for part of a name, `**` for any directories.
    #[arg(long, value_name = "PATTERN")]
    pub(super) hide: Vec<OsString>,
    /// Set a variable, or pass on yours by its name
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<OsString>,
    /// Set the variables that FILE lists, one NAME=VALUE per line
    #[arg(long = "env-file", value_name = "FILE", hide_short_help = true)]
    pub(super) env_files: Vec<OsString>,
    /// Access to your ssh-agent: `auto`, `on`, `off`, `required`
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = words(SshAgent::ALL, SshAgent::word))]
    pub(super) ssh_agent: Option<SshAgent>,
    /// Your git configuration: `literal`, `sanitized`, `off`
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = words(GitConfig::ALL, GitConfig::word))]
    pub(super) git_config: Option<GitConfig>,
    /// Files that look like secrets: `warn` or `mask`
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = words(Secrets::ALL, Secrets::word))]
    pub(super) secrets: Option<Secrets>,
}

impl InsideArgs {
    pub(super) fn add(self, layer: &mut Layer) -> Result<(), ConfigError> {
        layer.ssh_agent = flag(Key::SshAgent, self.ssh_agent);
        layer.git_config = flag(Key::GitConfig, self.git_config);
        layer.secrets = flag(Key::Secrets, self.secrets);
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
                .map_err(|source| ConfigError::Flag { name, source })?;
        }
        Ok(())
    }
}
