//! The program itself, with a secret in every place that can hold one: none of them stands in what it says at its
//! loudest, in what it answers, in its records, on its admin address, or in what `check` says.
use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use tempfile::TempDir;

use super::{B, BOTH, KEY, OWN, WRONG, all_in, says};
use crate::support::{
    agent::{Agent, answer},
    client::Client,
    issuer::{Issuer, Pair, claims},
    keys::{api_key, bearer, item},
    message::{CONTENT, Message},
    until,
};

const A: &str = "key-of-a-7be20c9d14f5";
const ADMIN: &str = "admin-token-3c9ef05d77";
const NO_ADMIN: &str = "admin-token-of-nobody-12";
const CLIENT: &str = "client-secret-b81f22d0c6";
const FETCHED: &str = "fetched-token-90aa6e4417";
const REDIS: &str = "redis-password-5d8c13fe";

/// A store that wants another password.
fn store() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for io in listener.incoming() {
            let mut io = io.unwrap();
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while io.read(&mut bytes).is_ok_and(|n| n > 0) {
                    let no = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
                    let _has_gone = io.write_all(no.as_bytes());
                }
            });
        }
    });
    addr
}

/// A gateway in a process of its own, and all that it says.
struct Program {
    child: Child,
    dir: TempDir,
    addr: SocketAddr,
    admin: SocketAddr,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn put(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// An address that nobody has.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

impl Program {
    fn start(
        credentials: impl FnOnce(&Path) -> String,
        issuer: &Issuer,
        agent: SocketAddr,
    ) -> Self {
        let dir = TempDir::new().unwrap();
        let at = dir.path();
        let (store, admin) = (store(), free());
        let keys = put(
            at,
            "keys",
            &(item("a", A, "tenant: red") + &item("b", B, "tenant: blue")),
        );
        let token = put(at, "token", &format!("{ADMIN}\n"));
        let key = put(at, "key", &format!("{KEY}\n"));
        let own = credentials(at);
        let yaml = format!(
            "listen: 127.0.0.1:0
workers: 1
log: trace
admin: {admin}
admin_token_file: '{token}'
backend: {{url: 'http://{agent}', {own}}}
auth: [{{api_keys: {{file: '{keys}'}}}}, {}]
state: {{store: 'redis://user:{REDIS}@{store}', timeout: 200ms}}
limits: {{rules: [{{name: calls, key: [caller], rate: {{limit: 4, per: 1h}}}}]}}
audit: {{folder: '{}', key_file: '{key}', flush: 10ms, checkpoint: 10ms, digest: true}}
",
            issuer.way(),
            at.join("log").display()
        );
        put(at, "gateway.yaml", &yaml);
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        command
            .arg("serve")
            .arg("--config")
            .arg(at.join("gateway.yaml"));
        command.stdout(File::create(at.join("stdout")).unwrap());
        command.stderr(File::create(at.join("stderr")).unwrap());
        let child = command.spawn().unwrap();
        let mut addr = None;
        until("it serves", || {
            let log = fs::read_to_string(at.join("stderr")).unwrap();
            let listens = log.split_once(" listen=");
            addr = listens.and_then(|(_, rest)| rest.split_once(' ')?.0.parse().ok());
            addr.is_some()
        });
        Self {
            child,
            addr: addr.unwrap(),
            admin,
            dir,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn check(&self, name: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_a2a-gateway"));
        let output = command.args(["check", "--config"]).arg(self.file(name));
        format!("{:?}", output.output().unwrap())
    }

    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.child.wait().unwrap();
    }
}

/// Everything that a caller or an operator may do with a credential, good or bad. What was answered.
fn use_it(program: &Program, tokens: &[String]) -> String {
    let mut told = String::new();
    let mut ask = |addr, line: &str, fields: &str, body: &str| {
        let answer = Client::connect(addr).ask(line, fields, body);
        writeln!(told, "{answer:?}").unwrap();
        answer.status()
    };
    let mut fields = vec![api_key(A), bearer(B), api_key(WRONG), bearer(WRONG)];
    fields.extend(tokens.iter().map(|token| bearer(token)));
    let mut statuses = vec![];
    for (n, fields) in fields.iter().enumerate() {
        for speak in BOTH {
            for (id, stream) in [("s", true), ("m", false), ("n", false)] {
                let id = format!("{id}{n}{speak:?}");
                let message = if stream {
                    Message::stream(&id)
                } else {
                    Message::send(&id)
                };
                let (line, body) = message.words(speak);
                statuses.push(ask(program.addr, line, fields, &body));
                ask(program.addr, &format!("{line}?key={A}"), fields, &body);
                ask(program.addr, line, fields, &body[1..]);
            }
            let (line, body) = speak.get();
            ask(program.addr, line, fields, &body);
        }
        ask(program.addr, &format!("GET /{WRONG}"), fields, "");
    }
    for status in [200, 401, 429] {
        assert!(statuses.contains(&status), "{status}: {statuses:?}");
    }
    for token in [ADMIN, NO_ADMIN] {
        let fields = bearer(token);
        for page in ["limits", "callers", "conversations", "audit", "nothing"] {
            ask(program.admin, &format!("GET /v1/{page}"), &fields, "");
        }
        for page in ["metrics", "livez", "readyz"] {
            ask(program.admin, &format!("GET /{page}"), &fields, "");
        }
        ask(
            program.admin,
            "POST /v1/conversations/c1:release",
            &fields,
            "",
        );
    }
    told
}

#[test]
fn no_secret_is_told_by_the_program_however_loud_it_is() {
    let pair = Pair::new("one");
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let mut other = claims();
    other["aud"] = "somebody-else".into();
    let tokens = [
        pair.signs(&claims()),
        pair.signs(&other),
        Pair::new("one").signs(&claims()),
        Pair::new("two").signs(&claims()),
    ];
    let (agent, _log) = Agent::always(says);
    let (desk, _log) = Agent::always(|_| {
        let token = json!({"access_token": FETCHED, "token_type": "Bearer", "expires_in": 600});
        answer(200, "content-type: application/json\r\n", token.to_string())
    });
    let header = |at: &Path| {
        let file = put(at, "own", &format!("Bearer {OWN}\n"));
        format!("credentials: {{header: {{file: '{file}'}}}}")
    };
    let fetched = |at: &Path| {
        let file = put(at, "secret", &format!("{CLIENT}\n"));
        format!(
            "credentials: {{oauth2: {{token_url: 'http://{desk}/token', client_id: gate, client_secret_file: '{file}'}}}}"
        )
    };
    let ways: [&dyn Fn(&Path) -> String; 2] = [&header, &fetched];
    let basic = STANDARD.encode(format!("gate:{CLIENT}"));
    let mut secrets = vec![
        A, B, WRONG, OWN, KEY, ADMIN, NO_ADMIN, CLIENT, &*basic, FETCHED, REDIS, CONTENT,
    ];
    // All of a token, and what proves it.
    for token in &tokens {
        secrets.extend([&**token, token.rsplit_once('.').unwrap().1]);
    }
    for own in ways {
        let mut program = Program::start(own, &issuer, agent);
        let told = use_it(&program, &tokens);
        let good = fs::read_to_string(program.file("gateway.yaml")).unwrap();
        let checked = program.check("gateway.yaml");
        let bad = [
            good.replace("redis://user", "redis://user@x:y"),
            good.replace("redis://", "http://"),
            good.replace(
                "http://127.0.0.1",
                &format!("http://user:{REDIS}@127.0.0.1"),
            ),
        ];
        let wrong = bad.iter().map(|text| {
            put(program.dir.path(), "bad.yaml", text);
            program.check("bad.yaml")
        });
        let wrong: String = wrong.collect();
        program.stop();
        let log = fs::read_to_string(program.file("stderr")).unwrap();
        let stdout = fs::read_to_string(program.file("stdout")).unwrap();
        let records = all_in(&program.file("log"));
        assert!(log.contains("DEBUG"), "it is loud");
        assert!(
            log.contains("WRONGPASS") || log.contains("state"),
            "it has a store: {log}"
        );
        assert!(stdout.contains("checkpoint") && records.contains("limits.calls"));
        assert!(checked.contains("no mistakes"), "{checked}");
        for (place, text) in [
            ("the log", log),
            ("an answer", told),
            ("the records", records),
            ("stdout", stdout),
            ("what check says", checked),
            ("what check says of mistakes", wrong),
        ] {
            for secret in &secrets {
                let at = text.find(secret);
                let around = at.map(|at| text[..at].rsplit('\n').next().unwrap_or_default());
                assert!(around.is_none(), "{secret} is in {place}, after {around:?}");
            }
        }
    }
}
