//! Limits that two gateways share by a real redis-server.
use std::{
    net::SocketAddr,
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::support::{
    agent::{Agent, answer},
    gateway::Gateway,
    message::Message,
    stage::ANN,
    until,
};

/// A server without persistence, killed when dropped.
struct Server(Child, TempDir);

impl Server {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is there");
        until("redis-server listens", || {
            UnixStream::connect(&socket).is_ok()
        });
        Self(child, folder)
    }

    fn gateway(&self, agent: SocketAddr) -> Gateway {
        let socket = self.1.path().join("redis.sock");
        let store = format!("redis+unix://{}", socket.display());
        Gateway::of(&format!(
            "workers: 1
backend: {{url: 'http://{agent}'}}
conversation: {{on_busy: 'off'}}
state: {{store: '{store}', on_error: refuse, timeout: 5s}}
auth: [anyone]
limits: {{rules: [
  {{name: a, key: [caller], quota: {{limit: 100, per: month}}}},
  {{name: b, key: [global], rate: {{limit: 1000, per: 1h}}}},
  {{name: c, key: [global], concurrency: {{limit: 1000}}}}]}}"
        ))
    }

    fn end(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

const TASK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}}"#;

fn send(gateway: &Gateway, id: &str) -> u16 {
    let (line, body) = Message::send(id).of(id).words(ANN.speak);
    gateway.ask(line, &ANN.fields(), &body).status()
}

#[test]
fn sixty_four_at_two_gateways_get_just_what_there_is() {
    let (agent, log) = Agent::always(|_| answer(200, "content-type: application/json\r\n", TASK));
    let mut server = Server::start();
    let gateways = [server.gateway(agent), server.gateway(agent)];
    // A store that is new admits nobody for a while; limits need not wait for that.
    until("the store is there", || {
        let ready = |gateway: &Gateway| {
            let (line, body) = ("GET /tasks/t", "");
            gateway.ask(line, &ANN.fields(), body).status() != 503
        };
        gateways.iter().all(ready)
    });
    let before = log.all().len();
    let admitted: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|n| {
                let gateway = &gateways[n % 2];
                scope.spawn(move || {
                    let sent = (0..5).map(|m| send(gateway, &format!("m{n}-{m}")));
                    sent.filter(|status| *status == 200).count()
                })
            })
            .collect();
        callers.into_iter().map(|c| c.join().unwrap()).sum()
    });
    assert_eq!((admitted, log.all().len() - before), (100, 100));
    server.end();
    until("what is not counted is refused", || {
        send(&gateways[0], "after") == 503
    });
    assert_eq!(log.all().len() - before, 100);
}
