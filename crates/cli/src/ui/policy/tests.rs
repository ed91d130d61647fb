use sandtable_testkit::fixtures::{resolved, spec};

use super::*;

#[test]
fn every_line_of_the_policy_has_its_origin() {
    let spec = spec();
    insta::assert_snapshot!(render(&spec, &resolved(&spec)), @r#"
    settings
      engine                    native (the only one here)           default
      profile                   safe                                 variable SANDTABLE_PROFILE
      source                    /repo                                a git repository
      directory                 /repo/sub                            default
      name                      try                                  flag --name
      hide                      *.key                                flag --hide
      mode                      overlay (auto: it can be)            default
      base                      source                               default
      network                   host (through /usr/bin/slirp4netns)  flag --network
      cpus                      0.5                                  flag --cpus
      memory                    4g (where possible)                  profile safe
      disk                      half of what is free                 default
      timeout                   90s                                  flag --timeout
      ssh_agent                 off                                  default
      git_config                sanitized                            profile safe
      secrets                   mask                                 project file /re\u{1b}po/.sandtable.toml
      rm                        true                                 user file /home/u/.config/sandtable/config.toml
      best_effort               false                                default
      dangerously_allow_source  false                                default

    mounts
      /repo       cow  /repo             the workspace         default
      /repo/.env  --   hidden            its name says secret  default
      /tmp        rw   empty, in memory  private               default

    copied into the private home
      /home/u/.claude.json  claude: its settings

    environment
      GH_TOKEN  [redacted]      default
      PASSED    [redacted]      flag --env
      PATH      /usr/bin:/bin   default
      PS1       "\u{1b}[31m$ "  default

    warnings
      nested  this runs inside another sandbox
    "#);
}
