//! Ways out of a container, for real: through a network of the sandbox's own, and through a proxy command. What one
//! sandbox has, another cannot reach, and nothing stays.

use std::net::SocketAddr;
use std::time::Duration;

use sandtable_testkit::container::Contained;

/// Every engine and caller with a way out, each with a repository.
/// A server of the image that answers everybody with one line.
const SERVER: &str = "while :; do nc -ll -p 8877 -e ./answer.sh; done";

#[test]
fn a_proxy_command_is_the_only_way_out() {
    Contained::each(Contained::with_way_out, |world, source| {
        let outside = world.outside().address();
        let (host, port) = (outside.ip(), outside.port());
        // Whoever asks the proxy is connected with the outside; it is no more of a proxy than that.
        world.env.file(&source.join("proxy.sh"), format!("#!/bin/sh\nexec nc {host} {port}\n"));
        set_executable(&source.join("proxy.sh"));
        let served = world.outside().answers("from outside\n");
        let script = format!(
            "echo $HTTPS_PROXY $http_proxy; echo hello | nc 127.0.0.1 8877; \
             nc -w 2 {host} {port} </dev/null && echo direct; ip addr | grep -c 'inet '"
        );
        let run = world.starting(&source).variable("SANDBOX_PROXY_COMMAND", "nc -ll -p 8877 -e ./proxy.sh");
        let ended = run.args(["--rm", "-q", "--timeout", "60", "--", "sh", "-c", &script]).ended();
        let said = "http://127.0.0.1:8877 http://127.0.0.1:8877\nfrom outside\n1\n";
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
        // Nobody waits for ever for a client that did not come.
        assert!(served.is_finished());
    });
}

#[test]
fn the_proxys_container_sees_the_source_and_not_what_a_command_left() {
    Contained::each(Contained::with_way_out, |world, source| {
        world.env.file(&source.join("answer.sh"), "#!/bin/sh\ncat README; id -u; env\n");
        set_executable(&source.join("answer.sh"));
        let script = "echo changed > README; echo 'echo evil' > answer.sh; nc 127.0.0.1 8877 </dev/null";
        let run = world.starting(&source).variable("TOKEN", "hunter2").args(["-e", "TOKEN"]);
        let run = run.args(["--network", "proxied", "--proxy-command", &format!("sh -c '{SERVER}'")]);
        let ended = run.args(["--rm", "-q", "--timeout", "60", "--", "sh", "-c", script]).ended();
        assert!(ended.stdout.starts_with("A sample.\n"), "{ended:?}");
        assert!(ended.stdout.contains("GIT_DISCOVERY_ACROSS_FILESYSTEM=1"), "{ended:?}");
        assert!(!ended.stdout.contains("hunter2") && !ended.stdout.contains("evil"), "{ended:?}");
    });
}

#[test]
fn a_proxy_command_that_is_none_says_why() {
    Contained::each(Contained::with_way_out, |world, source| {
        let run = |command: &str| {
            let run = world.starting(&source).args(["--proxy-command", command]);
            run.args(["--rm", "--", "true"]).ended()
        };
        let missing = run("no-such-proxy").expect_code(2).expect_stderr("cannot run `no-such-proxy`");
        drop(missing.expect_stderr("listen at port 8877"));
        let broken = run("sh -c 'echo no rules here >&2; exit 3'").expect_code(2);
        drop(broken.expect_stderr("no rules here").expect_stderr("exit status: 3"));
        let unnamed = world.starting(&source).args(["--network", "proxied", "--", "true"]).ended();
        drop(unnamed.expect_code(2).expect_stderr("LLXPRT_SANDBOX_PROXY_COMMAND"));
        let around = world.starting(&source).args(["--network", "host", "--proxy-command", "p"]);
        drop(around.args(["--", "true"]).ended().expect_code(2).expect_stderr("goes around"));
    });
}

#[test]
fn a_killed_supervisor_leaves_no_proxy_and_no_network() {
    Contained::each(Contained::with_way_out, |world, source| {
        let run = world.starting(&source).args(["--proxy-command", "nc -ll -p 8877 -e cat"]);
        let mut child = run.args(["--name", "dead", "--", "sleep", "1000"]).started();
        let running = || world.sandtable().args(["exec", "dead", "--", "true"]).ended().code == 0;
        assert!((0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            running()
        }));
        assert!(world.left().iter().any(|line| line.contains("-proxy")), "{:?}", world.left());
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = world.env.sandboxes().join("dead/container.json");
        assert!((0..20).any(|_| {
            drop(world.run_script(&source, &["--rm", "-q"], "true").expect_code(0));
            !journal.exists()
        }));
        assert_eq!(world.left(), [""; 0]);
        drop(world.sandtable().args(["rm", "dead"]).ended().expect_code(0));
    });
}

#[test]
fn a_published_port_is_loopbacks_and_neighbours_do_not_meet() {
    Contained::each(Contained::with_way_out, |world, source| {
        let port = free_port(world);
        let run = world.starting(&source).args(["--network", "nat", "-p", &format!("{port}:8080")]);
        let script = "ip addr | grep 'inet '; echo; exec nc -ll -p 8080 -e cat";
        drop(run.args(["--name", "server", "-d", "--", "sh", "-c", script]).ended().expect_code(0));
        let logs = || world.sandtable().args(["logs", "server"]).ended().stdout;
        let address = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let logs = logs();
            logs.ends_with("\n\n").then(|| own_address(&logs))
        });
        let address = address.flatten().expect("an address besides loopback");
        let outside = world.outside();
        let loopback = SocketAddr::from(([127, 0, 0, 1], port));
        assert!((0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            outside.reaches(loopback)
        }));
        assert!(!outside.reaches(SocketAddr::new(outside.address().ip(), port)), "only loopback");
        let taken = world.starting(&source).args(["--network", "nat", "-p", &format!("{port}:8080")]);
        let taken = taken.args(["--rm", "--", "true"]).ended().expect_code(2);
        drop(taken.expect_stderr("[port-taken]").expect_stderr("--publish OTHER:PORT"));
        let hidden = outside.loopback().local_addr().unwrap().port();
        let script = format!(
            "nc -w 2 {address} 8080 </dev/null && echo neighbour; nc -w 2 10.0.2.2 {hidden} </dev/null && echo host; \
             echo hello | nc -w 2 {} {} && echo out",
            outside.address().ip(),
            outside.address().port()
        );
        let served = outside.answers("hi\n");
        let ended =
            world.run_script(&source, &["--network", "nat", "--rm", "-q", "--timeout", "60"], &script);
        assert_eq!(ended.stdout, "hi\nout\n", "{}", ended.stderr);
        served.join().unwrap();
        drop(world.sandtable().args(["rm", "-f", "server"]).ended().expect_code(0));
    });
}

#[test]
fn a_debugger_finds_its_port() {
    Contained::each(Contained::with_way_out, |world, source| {
        let port = free_port(world).to_string();
        let run = |network: &str| {
            let run = world.starting(&source).variable("DEBUG", "1").variable("DEBUG_PORT", &port);
            run.args(["--network", network, "--rm", "--", "sh", "-c", "echo $DEBUG $DEBUG_PORT"]).ended()
        };
        assert_eq!(run("nat").expect_code(0).stdout, format!("1 {port}\n"));
        let closed = run("none").expect_code(0).expect_stderr("debugger-unreachable");
        assert_eq!(closed.stdout, "\n");
        let bad = world.starting(&source).variable("DEBUG", "true").variable("DEBUG_PORT", "x");
        drop(bad.args(["--", "true"]).ended().expect_code(2).expect_stderr("DEBUG_PORT"));
        let foreign = world.starting(&source).variable("DEBUG", "*").args(["--rm", "--", "true"]).ended();
        assert!(!foreign.expect_code(0).stderr.contains("debugger"));
    });
}

/// A port that nobody has at this moment where the engine publishes ports.
fn free_port(world: &Contained) -> u16 {
    world.outside().loopback().local_addr().unwrap().port()
}

fn own_address(listed: &str) -> Option<String> {
    let words = listed.lines().filter_map(|line| line.trim().strip_prefix("inet ")?.split('/').next());
    words.map(str::to_owned).find(|address| !address.starts_with("127."))
}

fn set_executable(path: &std::path::Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(path, mode).unwrap();
}
