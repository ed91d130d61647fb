use sandtable_testkit::fixtures::{resolved, spec};

use sandtable_app::config::value::Raw;

use super::*;

/// Settings from every source, over the defaults.
fn layer() -> Layer {
    let flag = |key: Key| Origin::Flag { name: key.flag().to_owned() };
    let safe = || Origin::Profile { name: "safe".to_owned() };
    let project = Origin::ProjectFile { path: "/re\u{1b}po/.sandtable.toml".into() };
    let user = Origin::UserFile { path: "/home/u/.config/sandtable/config.toml".into() };
    let text = |text: &str| Raw::Text(text.into());
    let set = [
        (Key::Profile, text("safe"), Origin::Variable { name: Key::Profile.variable().to_owned() }),
        (Key::Name, text("try"), flag(Key::Name)),
        (Key::Hide, Raw::List(vec!["*.key".into(), "a\u{1b}b".into()]), flag(Key::Hide)),
        (Key::EngineFlags, Raw::List(vec!["--shm-size=1g".into()]), flag(Key::EngineFlags)),
        (Key::Mounts, Raw::List(vec!["/data".into()]), flag(Key::Mounts)),
        (Key::Cpus, text("0.5"), flag(Key::Cpus)),
        (Key::Memory, text("4g"), safe()),
        (Key::Timeout, text("90"), flag(Key::Timeout)),
        (Key::Network, text("host"), flag(Key::Network)),
        (Key::GitConfig, text("sanitized"), safe()),
        (Key::Secrets, text("mask"), project),
        (Key::Rm, Raw::Switch(true), user),
    ];
    let defaults = sandtable_app::config::plain("/repo/sub".into()).layer;
    set.into_iter().fold(defaults, |layer, (key, raw, origin)| {
        Layer::of(key, raw, &origin).expect("a known value").or(layer)
    })
}

#[test]
fn every_line_of_the_policy_has_its_origin() {
    insta::assert_snapshot!(render(&layer(), &resolved(&spec())), @r#"
    settings
      source                    /repo                                a git repository
      name                      try                                  flag --name
      directory                 /repo/sub                            default
      mode                      overlay (auto: it can be)            default
      base                      source                               default
      rm                        true                                 user file /home/u/.config/sandtable/config.toml
      hide                      *.key                                flag --hide
      hide                      "a\u{1b}b"                           flag --hide
      ssh_agent                 auto                                 default
      git_config                sanitized                            profile safe
      secrets                   mask                                 project file /re\u{1b}po/.sandtable.toml
      network                   host (through /usr/bin/slirp4netns)  flag --network
      cpus                      0.5                                  flag --cpus
      memory                    4g (where possible)                  profile safe
      disk                      half of what is free                 default
      timeout                   90s                                  flag --timeout
      engine                    native (the only one here)           default
      engine_flags              --shm-size=1g                        flag --engine-flags
      profile                   safe                                 variable SANDTABLE_PROFILE
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
