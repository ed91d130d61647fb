//! What can be wrong with an engine, an image or the launcher's variables, each provoked for real: its own words,
//! what to do next, and a code that says whose move it is.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::env::Caller;
use sandtable_testkit::process::Ended;

/// Where people are sent.
const SUPPORT: &str = "visit https://github.com/vybestack/llxprt-code/discussions if the issue persists";

fn docker_alone(kind: Kind, caller: Caller) -> Option<Contained> {
    (kind == Kind::Docker).then(|| Contained::with_way_out(kind, caller))?
}

/// A registry that answers every question for an image in one way.
fn registry(listener: TcpListener, answer: &'static str) {
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut asked = [0; 4096];
            let length = client.read(&mut asked).unwrap_or(0);
            let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
            let plain = asked.starts_with("GET /v2/ ") && !answer.starts_with("401");
            let answer = if plain { "200 OK\r\nContent-Length: 2\r\n\r\n{}" } else { answer };
            write!(client, "HTTP/1.1 {answer}").ok();
        }
    });
}

fn pulled(world: &Contained, source: &PathBuf, image: &str) -> Ended {
    let registry = image.split('/').next().unwrap_or_default();
    let conf = world.env.root().join("registries.conf");
    world.env.file(&conf, format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n"));
    let words = ["run", "--engine", world.kind.word(), "--image", image, "--rm", "--", "true"];
    let run = world.sandtable().directory(source).variable("CONTAINERS_REGISTRIES_CONF", conf);
    run.args(words).ended()
}

#[test]
fn an_image_that_cannot_be_had_says_why() {
    Contained::each(Contained::with_way_out, |world, source| {
        let unknown = "404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 71\r\n\r\n\
             {\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"manifest unknown\"}]}\n\n";
        let closed = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"here\"\r\n\
             Content-Type: application/json\r\nContent-Length: 77\r\n\r\n\
             {\"errors\":[{\"code\":\"UNAUTHORIZED\",\"message\":\"authentication required\"}]}\n\n\n\n\n";
        let nobody = world.outside().loopback().local_addr().unwrap().port();
        let served = |answer| {
            let listener = world.outside().loopback();
            let port = listener.local_addr().unwrap().port();
            registry(listener, answer);
            port
        };
        for (port, code, stable, next) in [
            (served(unknown), 2, "[image-missing]", "check the name"),
            (served(closed), 125, "[image-authentication]", "log in"),
            (nobody, 125, "[image-offline]", "check the network"),
        ] {
            let ended = pulled(world, &source, &format!("127.0.0.1:{port}/a/b:1")).expect_code(code);
            let ended = ended.expect_stderr(stable).expect_stderr(next).expect_stderr(SUPPORT);
            assert!(!ended.stderr.contains('@') && !ended.stderr.contains("gemini"), "{}", ended.stderr);
        }
    });
}

#[test]
fn an_image_for_another_machine_is_refused() {
    Contained::each(Contained::with_way_out, |world, source| {
        let other = if std::env::consts::ARCH == "x86_64" { "arm64" } else { "amd64" };
        let image = world.image.replace(":1", ":other");
        let saved = world.env.root().join("saved");
        world.env.directory(&saved);
        let own = saved.join("own.tar").display().to_string();
        world.engine(&["save", "--output", &own, &world.image]);
        // The same image, but for the word that says what it is for.
        let script = "mkdir x && tar -C x -xf own.tar && sed -i \"s/\\\"architecture\\\":\\\"[a-z0-9]*\\\"/\\\"architecture\\\":\\\"$0\\\"/; \
                      s|$1|$2|g\" x/*.json && rm -f x/repositories && tar -C x -cf other.tar .";
        let words = ["-c", script, other, &world.image, &image];
        drop(world.run("sh").directory(&saved).args(words).ended().expect_code(0));
        world.engine(&["load", "--input", &saved.join("other.tar").display().to_string()]);
        let words = ["run", "--engine", world.kind.word(), "--image", &image, "--rm", "--", "true"];
        let ended = world.sandtable().directory(&source).args(words).ended().expect_code(2);
        let ended = ended.expect_stderr("is for another kind of machine").expect_stderr(other);
        drop(ended.expect_stderr("[image-platform]").expect_stderr(SUPPORT));
        let words = ["tool", "install", "just", "--engine", world.kind.word(), "--image", &image];
        drop(world.sandtable().args(words).ended().expect_code(2).expect_stderr("[image-platform]"));
        world.engine(&["rmi", "--force", &image]);
    });
}

#[test]
fn an_engine_that_is_not_there_or_lets_nobody_in_is_said() {
    Contained::each(docker_alone, |world, source| {
        let run = |address: &str| {
            let run = world.starting(&source).variable("DOCKER_HOST", address);
            run.args(["--rm", "--", "true"]).ended()
        };
        let gone = format!("unix://{}", world.env.root().join("no-such-socket").display());
        let ended = run(&gone).expect_code(125).expect_stderr("Docker does not answer");
        drop(ended.expect_stderr("[engine-down]").expect_stderr("systemctl start docker"));
        drop(run("tcp://192.0.2.1:2375").expect_code(2).expect_stderr("[engine-remote]"));
        if let Caller::Ordinary { .. } = world.env.caller() {
            let path = world.env.root().join("closed");
            let _listener = UnixListener::bind(&path).unwrap();
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let ended = run(&format!("unix://{}", path.display())).expect_code(125);
            let ended = ended.expect_stderr("[engine-denied]").expect_stderr("usermod -aG docker");
            drop(ended.expect_stderr("Docker does not let you in"));
        }
        let nowhere = world.run("env").directory(&source).arg("PATH=/nonexistent").arg(world.env.binary());
        let nowhere = nowhere.args(["run", "--engine", "docker", "--image", "x", "--", "true"]).ended();
        drop(nowhere.expect_code(125).expect_stderr("[engine-missing]").expect_stderr("apt-get install"));
    });
}

#[test]
fn an_entry_point_that_is_not_there_harms_nothing() {
    Contained::each(Contained::with_way_out, |world, source| {
        let recipe = format!("FROM {}\nENTRYPOINT [\"/no/such/file\"]\nUSER 12345\n", world.image);
        world.env.file(&source.join(".sandtable/Dockerfile"), recipe);
        let name = world.image.replace(":1", ":entry");
        let words = ["run", "--rm", "-q", "--build", "--engine", world.kind.word(), "--image", &name];
        let ended = world.sandtable().directory(&source).args(words).args(["--", "id", "-u"]).ended();
        assert_ne!(ended.expect_code(0).stdout, "12345\n");
        world.env.file(&source.join(".sandtable/Dockerfile"), "FROM scratch\nFROBNICATE\n");
        let ended = world.sandtable().directory(&source).args(words).args(["--", "true"]).ended();
        drop(ended.expect_code(2).expect_stderr("[image-build]").expect_stderr(SUPPORT));
        world.engine(&["rmi", "--force", &name]);
    });
}

#[test]
fn variables_of_the_launcher_that_mean_nothing_are_named() {
    let Some(world) =
        [Kind::Podman, Kind::Docker].into_iter().find_map(|kind| Contained::new(kind, Caller::Same))
    else {
        return;
    };
    let source = world.env.repository("r");
    for (name, value, words) in [
        ("SANDBOX_FLAGS", "--frobnicate", "option `--frobnicate` for the engine is not known"),
        ("SANDBOX_FLAGS", "--privileged", "--dangerously-engine-flags"),
        ("SANDBOX_FLAGS", "--shm-size '1g", "variable `SANDBOX_FLAGS` has no usable value"),
        ("SANDBOX_FLAGS", "--label=$(id)", "variable `SANDBOX_FLAGS` has no usable value"),
        ("SANDBOX_FLAGS", "-v/:/host", "is not known"),
        ("SANDBOX_FLAGS", "-itv /:/host", "is not known"),
        ("SANDBOX_FLAGS", "--shm-size 1g evil-image sh", "is not known"),
        ("SANDBOX_MOUNTS", "/etc:relative", "variable `SANDBOX_MOUNTS` has no usable value"),
        ("SANDBOX_MOUNTS", "/etc:/x:rx", "unknown value `rx`"),
        ("SANDBOX_MOUNTS", "/no/such/file", "mount source `/no/such/file` cannot be used"),
        ("LLXPRT_SANDBOX_MOUNTS", "a:b:c:d", "variable `LLXPRT_SANDBOX_MOUNTS` has no usable value"),
        ("SANDBOX_ENV", "A B=1", "variable `SANDBOX_ENV` has no usable value"),
        ("SANDBOX_ENV", "=1", "variable `SANDBOX_ENV` has no usable value"),
        ("SANDBOX_ENV", "HOME=/x", "variable `HOME` cannot be given"),
        ("SANDBOX_PORTS", "80,eighty", "`eighty` is not a port"),
        ("SANDBOX_PORTS", "0.0.0.0:80:80", "is not a port"),
        ("SANDBOX_PROXY_COMMAND", "a | b", "variable `SANDBOX_PROXY_COMMAND` has no usable value"),
        ("SANDBOX_NETWORK", "opne", "variable `SANDBOX_NETWORK` has no usable value"),
        ("SANDBOX_MEMORY", "lots", "variable `SANDBOX_MEMORY` has no usable value"),
        ("LLXPRT_SANDBOX_IMAGE", "--privileged", "variable `LLXPRT_SANDBOX_IMAGE` has no usable value"),
    ] {
        let run = world.sandtable().directory(&source).variable(name, value);
        let engine = ["run", "--engine", world.kind.word(), "--dry-run"];
        let run = run.args(engine);
        let run = if name.ends_with("IMAGE") { run } else { run.args(["--image", &world.image]) };
        let ended = run.args(["--", "true"]).ended();
        assert!(ended.code == 2 && ended.stderr.contains(words), "{name}={value}: {ended:?}");
    }
}

#[test]
fn an_engine_in_another_process_namespace_is_named() {
    Contained::each(docker_alone, |world, source| {
        if world.env.caller() != Caller::Same || !sandtable_testkit::require::is_root() {
            return;
        }
        // The daemon and its containers stay outside.
        let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let words = ["run", "--engine", "docker", "--image", &world.image, "--rm", "--", "true"];
        let ended = world.sandtable().directory(&source).args(words).through(apart).ended();
        let ended = ended.expect_code(125).expect_stderr("its engine runs in another PID namespace");
        assert!(!ended.stderr.contains("os error 0"), "{}", ended.stderr);
        // The engine removes the container once its first process has found nobody to answer.
        let began = std::time::Instant::now();
        while !world.left().is_empty() && began.elapsed() < std::time::Duration::from_mins(1) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert_eq!(world.left(), [""; 0]);
    });
}
