use sandtable_sandbox::model::spec::{
    EngineChoice, GitConfig, Lifetime, Network, Secrets, SourceGuard, Strictness,
};

use super::key::Key;
use super::*;
use crate::env::{HOME, XDG_CONFIG_HOME};

/// A home with a user's file, a project with a project's file.
struct World {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for made in ["config/sandtable", "project"] {
            fs_err::create_dir_all(directory.path().join(made)).expect("a fresh directory");
        }
        let path = |name: &str| directory.path().join(name).display().to_string();
        let variables = vec![(HOME.to_owned(), path("")), (XDG_CONFIG_HOME.to_owned(), path("config"))];
        Self { directory, variables }
    }

    fn user(self, text: &str) -> Self {
        fs_err::write(self.directory.path().join("config/sandtable/config.toml"), text)
            .expect("own directory");
        self
    }

    fn project(self, text: &str) -> Self {
        fs_err::write(self.directory.path().join("project/.sandtable.toml"), text).expect("own directory");
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn load(&self, flags: &[(Key, Raw)]) -> Result<Loaded, ConfigError> {
        let mut layer = Layer::default();
        for (key, raw) in flags {
            let origin = Origin::Flag { name: key.flag().to_owned() };
            layer.set(*key, raw.clone(), &origin).expect("a known value");
        }
        let directory = Setting::new(self.directory.path().join("project"), Origin::Default);
        layer.directory = layer.directory.or(Some(directory));
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        super::load(&Environment::of(&variables), layer)
    }
}

use super::value::Raw;

fn text(text: &str) -> Raw {
    Raw::Text(text.into())
}

/// What a setting is, and who said so.
fn network(world: &World, flags: &[(Key, Raw)]) -> String {
    let network = world.load(flags).expect("known values").spec.network;
    let from = match network.origin {
        Origin::Flag { .. } => "flag".to_owned(),
        Origin::Program => "program".to_owned(),
        Origin::Variable { name } => name,
        Origin::ProjectFile { .. } => "project".to_owned(),
        Origin::Profile { name } => format!("profile {name}"),
        Origin::UserFile { .. } => "user".to_owned(),
        Origin::Default => "default".to_owned(),
    };
    format!("{} from {from}", network.value)
}

#[test]
fn each_layer_beats_the_next() {
    let world = World::new();
    assert_eq!(network(&world, &[]), "none from default");
    let world = world.user("network = \"host\"");
    assert_eq!(network(&world, &[]), "host from user");
    let world = world.user("network = \"host\"\nprofile = \"dev\"");
    assert_eq!(network(&world, &[]), "nat from profile dev");
    let world = world.project("network = \"none\"");
    assert_eq!(network(&world, &[]), "none from project");
    let world = world.variable("SANDBOX_NETWORK", "on");
    assert_eq!(network(&world, &[]), "nat from SANDBOX_NETWORK");
    let world = world.variable("LLXPRT_SANDBOX_NETWORK", "host");
    assert_eq!(network(&world, &[]), "host from LLXPRT_SANDBOX_NETWORK");
    let world = world.variable("SANDTABLE_NETWORK", "nat");
    assert_eq!(network(&world, &[]), "nat from SANDTABLE_NETWORK");
    assert_eq!(network(&world, &[(Key::Network, text("host"))]), "host from flag");
}

#[test]
fn a_profile_can_be_named_by_every_layer_above_it() {
    let world = World::new().user("profile = \"dev\"").project("profile = \"safe\"");
    assert_eq!(network(&world, &[]), "none from profile safe");
    assert_eq!(network(&world, &[(Key::Profile, text("dev"))]), "nat from profile dev");
    let none = world.variable("SANDTABLE_PROFILE", "none");
    assert_eq!(network(&none, &[]), "none from default");
}

#[test]
fn every_setting_can_be_set_by_file_and_by_variable() {
    for key in Key::ALL {
        let (in_file, in_variable) = match key {
            Key::Engine => ("\"native\"", "native"),
            Key::Pull => ("\"never\"", "never"),
            Key::Publish => ("[\"80:81\", \"90\"]", "80:81,90"),
            Key::EngineFlags => ("[\"--label\", \"a b\"]", "--label 'a b'"),
            Key::ProxyCommand => ("[\"proxy\", \"-p\"]", "proxy -p"),
            Key::SupportUrl => ("\"https://help.example\"", "https://help.example"),
            Key::SeatbeltProfile => ("\"restrictive-open\"", "restrictive-open"),
            Key::Profile => ("\"safe\"", "safe"),
            Key::Name => ("\"try\"", "try"),
            Key::Image | Key::Directory | Key::Report => ("\"/x\"", "/x"),
            Key::Mode => ("\"overlay\"", "overlay"),
            Key::Base => ("\"store\"", "store"),
            Key::Mounts | Key::Expose | Key::AgentHome | Key::EnvFile => ("[\"/x\"]", "/x"),
            Key::Env => ("[\"A=x\", \"B\"]", "A=x,B"),
            Key::PassEnv => ("[\"A\"]", "A"),
            Key::Hide => ("[\"*.key\"]", "*.key"),
            Key::Tools => ("[\"ninja@1.13\"]", "ninja@1.13"),
            Key::Network => ("\"host\"", "host"),
            Key::Cpus => ("1.5", "1.5"),
            Key::Memory => ("\"2g\"", "2g"),
            Key::Pids => ("64", "64"),
            Key::Disk => ("\"20m\"", "20m"),
            Key::Timeout => ("90", "90s"),
            Key::GitConfig | Key::SshAgent => ("\"off\"", "off"),
            Key::Secrets => ("\"mask\"", "mask"),
            Key::Summary => ("\"short\"", "short"),
            _ => ("true", "1"),
        };
        let mut from_file = user_layer_of(&format!("{} = {in_file}", key.word()));
        let name = format!("SANDTABLE_{}", key.word().to_ascii_uppercase());
        let from_variable = variables::layer(&Environment::of(&[(&name, in_variable)])).expect("known");
        assert_eq!(from_file.shown(*key), from_variable.shown(*key), "{}", key.word());
        assert_ne!(from_file.shown(*key), Layer::default().shown(*key), "{}", key.word());
        from_file = from_file.or(from_variable);
        assert_ne!(from_file.shown(*key), "nothing");
    }
}

fn user_layer_of(text: &str) -> Layer {
    let world = World::new().user(text);
    let path = world.directory.path().join("config/sandtable/config.toml");
    file::user(&path, None).expect("known values").expect("there is one").layer
}

#[test]
fn an_empty_variable_is_no_variable() {
    let world = World::new().user("network = \"nat\"\nrm = true");
    let world =
        world.variable("SANDTABLE_NETWORK", "").variable("SANDTABLE_RM", "").variable("LLXPRT_SANDBOX", "");
    let spec = world.load(&[]).expect("nothing is wrong").spec;
    assert_eq!((spec.network.value, spec.lifetime.value), (Network::Nat, Lifetime::Discard));
    assert_eq!(spec.engine, Setting::default_value(EngineChoice::Auto));
}

#[test]
fn mounts_add_up_and_the_stronger_one_has_the_place() {
    let world = World::new().user("mounts = [\"/a:/x\", \"/b:/y\"]").variable("SANDTABLE_MOUNTS", "/c:/x,/d");
    let flag = Raw::List(vec!["/e:/y:rw".into()]);
    let spec = world.load(&[(Key::Mounts, flag)]).expect("nothing is wrong").spec;
    let shown: Vec<String> = spec
        .mounts
        .iter()
        .map(|mount| format!("{} from {}", form::Item::shown(&mount.value), mount.origin))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    /e:/y:rw from flag --mount
    /c:/x:ro from variable SANDTABLE_MOUNTS
    /d:/d:ro from variable SANDTABLE_MOUNTS
    ");
}

#[test]
fn paths_of_the_command_line_start_from_the_current_directory() {
    let flags = [(Key::Directory, text("sub")), (Key::Mounts, Raw::List(vec!["data:/data".into()]))];
    let spec = World::new().load(&flags).expect("nothing is wrong").spec;
    let here = std::env::current_dir().expect("tests have one");
    assert_eq!(spec.directory.value, here.join("sub"));
    assert_eq!(spec.mounts[0].value.source, here.join("data"));
}

/// Loads a project's file that says `key = value` over a user's file that says `key = held`.
fn project_over_user(key: &str, held: &str, value: &str) -> Result<Loaded, ConfigError> {
    World::new().user(&format!("{key} = {held}")).project(&format!("{key} = {value}")).load(&[])
}

#[test]
fn a_project_may_narrow_and_nothing_else() {
    // Narrowest first: a project may go to the front of its line, never to the back.
    let lines: [(&str, &[&str]); 12] = [
        ("network", &["\"none\"", "\"nat\"", "\"host\""]),
        ("secrets", &["\"mask\"", "\"warn\""]),
        ("ssh_agent", &["\"off\"", "\"auto\"", "\"on\""]),
        ("git_config", &["\"off\"", "\"sanitized\"", "\"literal\""]),
        ("best_effort", &["false", "true"]),
        ("dangerously_allow_source", &["false", "true"]),
        ("profile", &["\"tight\"", "\"safe\"", "\"offline\"", "\"none\""]),
        ("cpus", &["0.5", "2", "\"4\""]),
        ("memory", &["\"100m\"", "\"1g\""]),
        ("pids", &["2", "64"]),
        ("disk", &["\"20m\"", "\"1g\"", "\"none\""]),
        ("timeout", &["\"500ms\"", "1", "\"1m\""]),
    ];
    for (key, values) in lines {
        for (held_rank, held) in values.iter().enumerate() {
            for (rank, value) in values.iter().enumerate() {
                let loaded = project_over_user(key, held, value);
                let widening = matches!(loaded, Err(ConfigError::Widening(_)));
                assert_eq!(widening, rank > held_rank, "{key}: {value} over {held}: {loaded:?}");
                assert!(widening || loaded.is_ok(), "{key}: {value} over {held}: {loaded:?}");
            }
        }
    }
}

#[test]
fn what_is_not_a_projects_business_must_stay_as_it_is() {
    let cases = [
        ("engine", "\"native\"", "\"docker\""),
        ("image", "\"/a\"", "\"/b\""),
        ("seatbelt_profile", "\"permissive-closed\"", "\"permissive-open\""),
        ("name", "\"mine\"", "\"yours\""),
        ("mode", "\"overlay\"", "\"auto\""),
        ("mounts", "[\"/a:/a:ro\"]", "[\"/a:/a:rw\"]"),
        ("mounts", "[\"/a\"]", "[\"/a\", \"/etc\"]"),
        ("rm", "false", "true"),
        ("rm", "true", "false"),
        ("dry_run", "false", "true"),
        ("json", "false", "true"),
        ("report", "\"/a\"", "\"/b\""),
        ("quiet", "false", "true"),
        ("summary", "\"full\"", "\"short\""),
        ("tty", "false", "true"),
        ("detach", "false", "true"),
    ];
    for (key, held, value) in cases {
        let refused = project_over_user(key, held, value);
        assert!(matches!(refused, Err(ConfigError::Widening(_))), "{key}: {refused:?}");
        assert!(project_over_user(key, held, held).is_ok(), "{key}");
    }
    let unasked = World::new().project("mounts = [\"/etc\"]").load(&[]);
    assert!(matches!(unasked, Err(ConfigError::Widening(_))), "{unasked:?}");
}

#[test]
fn a_projects_line_that_the_user_outvotes_or_asks_for_does_no_harm() {
    let world = World::new().project("network = \"nat\"\nrm = true\nbest_effort = true");
    assert!(matches!(world.load(&[]), Err(ConfigError::Widening(_))));
    let agreed =
        [(Key::Network, text("nat")), (Key::Rm, Raw::Switch(true)), (Key::BestEffort, Raw::Switch(true))];
    let spec = world.load(&agreed).expect("the user says the same").spec;
    assert_eq!(spec.strictness.value, Strictness::BestEffort);
    let outvoted =
        [(Key::Network, text("none")), (Key::Rm, Raw::Switch(false)), (Key::BestEffort, Raw::Switch(false))];
    let spec = world.load(&outvoted).expect("the user says otherwise").spec;
    assert_eq!((spec.network.value, spec.strictness.value), (Network::None, Strictness::Strict));
}

#[test]
fn a_projects_profile_is_judged_by_what_it_changes() {
    let widening = World::new().project("profile = \"dev\"").load(&[]);
    let Err(ConfigError::Widening(widening)) = widening else { panic!("{widening:?}") };
    assert_eq!((widening.key, widening.setting), (Key::Profile, Key::Network));
    let tempered = World::new().project("profile = \"dev\"\nnetwork = \"none\"").load(&[]);
    assert_eq!(tempered.expect("not wider than before").spec.network.value, Network::None);
    let spec = World::new().project("profile = \"tight\"").load(&[]).expect("narrower").spec;
    assert_eq!((spec.secrets.value, spec.git_config.value), (Secrets::Mask, GitConfig::Sanitized));
    assert_eq!(spec.source_guard, Setting::default_value(SourceGuard::Refuse));
}

#[test]
fn a_user_may_define_profiles_of_their_own() {
    let file = "network = \"host\"\nprofile = \"mine\"\n[profiles.mine]\nnetwork = \"nat\"\npids = 99\n\
        expose = [\"/opt/x\"]\n[profiles.other]\nnetwork = \"none\"";
    let world = World::new().user(file);
    assert_eq!(network(&world, &[]), "nat from profile mine");
    assert_eq!(network(&world, &[(Key::Profile, text("other"))]), "none from profile other");
    assert_eq!(network(&world, &[(Key::Network, text("none"))]), "none from flag");
    let spec = world.load(&[]).expect("defined").spec;
    assert_eq!(spec.limits.pids.map(|pids| pids.origin.to_string()), Some("profile mine".to_owned()));
    assert_eq!(spec.expose[0].origin.to_string(), "profile mine");
    assert_eq!(spec.profile.value.as_str(), "mine");
    let unknown = world.load(&[(Key::Profile, text("nothing"))]);
    let Err(ConfigError::UnknownProfile { known, .. }) = unknown else { panic!("{unknown:?}") };
    assert_eq!(known.join(" "), "none dev safe tight offline mine other");
}

#[test]
fn a_profile_that_means_nothing_is_refused() {
    for bad in [
        "[profiles.safe]\nnetwork = \"host\"",
        "[profiles.\"Not A Name\"]",
        "[profiles]\nmine = 1",
        "[profiles.mine]\nprofile = \"dev\"",
        "[profiles.mine]\nnetwrok = \"none\"",
        "[profiles.mine]\nnetwork = \"x\"",
        "profiles = 1",
    ] {
        let refused = World::new().user(bad).load(&[]);
        assert!(matches!(refused, Err(ConfigError::File(_))), "{bad}: {refused:?}");
    }
}

#[test]
fn a_projects_own_profile_only_narrows_and_is_never_taken_for_the_users() {
    let wide = "[profiles.mine]\nnetwork = \"host\"";
    let narrow = "[profiles.mine]\nsecrets = \"mask\"";
    let asked = [(Key::Profile, text("mine"))];
    for project in [format!("profile = \"mine\"\n{wide}"), wide.to_owned()] {
        let refused = World::new().project(&project).load(&asked);
        let Err(ConfigError::Widening(widening)) = refused else { panic!("{refused:?}") };
        assert_eq!(widening.setting, Key::Network);
    }
    assert!(World::new().project(wide).load(&[]).is_ok(), "nobody asks for it");
    let spec = World::new().project(narrow).load(&asked).expect("narrower").spec;
    assert_eq!(spec.secrets.value, Secrets::Mask);
    let both = World::new().user("[profiles.mine]\nnetwork = \"nat\"").project(wide);
    assert_eq!(network(&both, &asked), "nat from profile mine");
}

#[test]
fn a_project_may_set_a_limit_and_not_lift_one() {
    let set = World::new().project("memory = \"1g\"\npids = 64").load(&[]).expect("narrower than nothing");
    assert_eq!(set.spec.limits.memory.map(|limit| limit.value.to_string()), Some("1g".to_owned()));
    // Without a profile nothing is limited, but there is no network either: none is narrower than the other.
    for (held, asked) in [("dev", "none"), ("none", "dev")] {
        let refused = project_over_user("profile", &format!("\"{held}\""), &format!("\"{asked}\""));
        assert!(matches!(refused, Err(ConfigError::Widening(_))), "{held} {asked}: {refused:?}");
    }
}

#[test]
fn a_limit_without_a_meaning_is_refused() {
    for bad in ["memory = 512", "memory = \"512\"", "cpus = 0", "pids = 1.5", "timeout = true", "pids = 0x40"]
    {
        let refused = World::new().user(bad).load(&[]);
        assert!(matches!(refused, Err(ConfigError::File(_))), "{bad}: {refused:?}");
    }
}

#[test]
fn a_broken_user_file_stops_everything() {
    for broken in ["network =", "nonsense = 1", "network = \"x\""] {
        let refused = World::new().user(broken).load(&[]);
        assert!(matches!(refused, Err(ConfigError::File(_))), "{broken}: {refused:?}");
    }
}
