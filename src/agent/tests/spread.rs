//! Several addresses of one agent.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;

use super::server::Server;
use super::{LONG, OK, agent_of, get, post, request, settings, whole};
use crate::agent::{
    Agent, Answer, Breaker, Check, Error, Lookup, Place, Repeats, Resolver, Room, Settings, Whose,
};

fn at(ports: &[u16]) -> Settings {
    let mut settings = settings("http://agent.test:9");
    let place = |port: &u16| Place {
        host: "127.0.0.1".to_owned(),
        port: *port,
    };
    settings.addresses = ports.iter().map(place).collect();
    settings
}

/// A port where nobody listens.
fn nobody() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn well() -> Server {
    Server::start(|mut peer| {
        while let Some(request) = peer.read_request() {
            assert!(request.contains("host: agent.test:9\r\n"), "{request}");
            peer.write(OK);
        }
    })
}

async fn sent(agent: &Agent, whose: Whose) -> Result<(), Error> {
    let answer = agent.send_for(whose, request(Method::POST), LONG, false);
    whole(answer.await?).await.map(|_| ())
}

#[tokio::test]
async fn all_addresses_are_used_under_the_name_of_the_agent() {
    let servers = [well(), well(), well()];
    let agent = agent_of(&at(&servers.each_ref().map(Server::port)));
    let calls = (0..30).map(|_| post(&agent));
    for answer in futures_util::future::join_all(calls).await {
        whole(answer.unwrap()).await.unwrap();
    }
    let seen = servers.each_ref().map(Server::seen);
    assert_eq!(seen.iter().sum::<usize>(), 30);
    assert!(seen.iter().all(|seen| *seen > 5), "{seen:?}");
    assert!(agent.room.status().addresses.iter().all(|a| a.busy == 0));
}

#[tokio::test]
async fn a_dead_address_is_turned_away_from_and_then_left_alone() {
    let server = well();
    let agent = agent_of(&at(&[nobody(), server.port()]));
    for _ in 0..30 {
        sent(&agent, Whose::default()).await.unwrap();
    }
    let status = agent.room.status();
    assert_eq!(status.addresses[0].breaker, Breaker::Open);
    assert!(!status.addresses[0].up && status.addresses[1].up);
    assert_eq!(status.retries, 3, "three failures, and no more after them");
    assert_eq!(server.seen(), 30);
}

#[tokio::test]
async fn no_more_is_sent_again_than_is_allowed() {
    let server = well();
    let mut settings = at(&[nobody(), server.port()]);
    settings.breaker.failures = 0;
    settings.breaker.percent = 0;
    settings.retries = Repeats {
        percent: 0,
        floor: 0,
    };
    let agent = agent_of(&settings);
    let mut failed = 0;
    for _ in 0..40 {
        failed += usize::from(sent(&agent, Whose::default()).await.is_err());
    }
    assert!(failed > 5, "{failed}");
    assert_eq!(agent.room.status().retries, 0);
}

#[tokio::test]
async fn one_call_tries_whether_an_address_is_back() {
    let (server, late) = (well(), nobody());
    let agent = agent_of(&at(&[late, server.port()]));
    while agent.room.status().addresses[0].up {
        sent(&agent, Whose::default()).await.unwrap();
    }
    let listener = std::net::TcpListener::bind(("127.0.0.1", late)).unwrap();
    listener.set_nonblocking(true).unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    // It accepts and says nothing: whoever went there is the trial, and all others go elsewhere.
    let deadline = Duration::from_secs(1);
    let calls = (0..40).map(|_| agent.send(request(Method::GET), deadline, true));
    let ended = futures_util::future::join_all(calls).await;
    let late = ended.iter().filter(|ended| ended.is_err()).count();
    assert_eq!(late, 1, "the trial, and only that");
    assert_eq!(listener.accept().map(|_| ()).map_err(|e| e.kind()), Ok(()));
    let again = listener.accept().map_err(|error| error.kind());
    assert_eq!(again.err(), Some(io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn a_conversation_stays_and_what_an_answer_names_is_remembered() {
    let servers = [well(), well(), well()];
    let agent = agent_of(&at(&servers.each_ref().map(Server::port)));
    let seen = || servers.each_ref().map(Server::seen);
    let grown = |before: [usize; 3]| {
        let now = seen();
        (0..3).find(|at| now[*at] > before[*at]).unwrap()
    };
    let mut homes = HashSet::new();
    for talk in 0..8 {
        let (context, task) = (format!("talk-{talk}"), format!("task-{talk}"));
        let before = seen();
        let answer = post(&agent).await.unwrap();
        let mut homing = agent.homing(answer.body()).unwrap();
        assert!(!homing.learn(Some(&context), None));
        assert!(homing.learn(Some(&context), Some(&task)));
        whole(answer).await.unwrap();
        let home = grown(before);
        homes.insert(home);
        for (context, task) in [(Some(&*context), None), (None, Some(&*task))] {
            for _ in 0..3 {
                let before = seen();
                sent(&agent, agent.whose(context, task)).await.unwrap();
                assert_eq!(grown(before), home);
            }
        }
    }
    assert!(homes.len() > 1, "conversations are spread");
}

#[tokio::test]
async fn an_address_is_asked_how_it_is() {
    let ill = Server::start(|mut peer| {
        while let Some(request) = peer.read_request() {
            assert!(request.starts_with("GET /healthz HTTP/1.1\r\n"));
            peer.write(b"HTTP/1.1 500 Ill\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let server = Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(OK);
        }
    });
    let mut settings = at(&[ill.port(), server.port()]);
    settings.check = Some(Check {
        path: "/healthz".parse().unwrap(),
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        healthy: 1,
        unhealthy: 1,
        success: false,
    });
    let room = Room::new(&settings);
    let agent = Arc::new(Agent::new(&settings, room.clone()).unwrap());
    agent.chore().unwrap().await;
    assert!(agent.chore().is_none(), "they were asked just now");
    let up: Vec<_> = room.status().addresses.iter().map(|a| a.up).collect();
    assert_eq!(up, [false, true]);
    for _ in 0..20 {
        whole(get(&agent).await.unwrap()).await.unwrap();
    }
    assert_eq!((ill.seen(), server.seen()), (1, 21));
}

async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_lone_address_without_calls_does_not_stay_down() {
    let agent = agent_of(&at(&[nobody()]));
    let is_down = || agent.room.status().is_down();
    for _ in 0..3 {
        assert!(!is_down());
        post(&agent).await.err().unwrap();
    }
    assert!(is_down());
    later(6).await;
    assert!(!is_down(), "whoever heeds this sends no call otherwise");
    // Nobody is there still: out again, for longer.
    post(&agent).await.err().unwrap();
    assert!(is_down());
    later(6).await;
    assert!(is_down());
    later(6).await;
    assert!(!is_down());
}

#[tokio::test]
async fn a_good_check_ends_what_failed_calls_began() {
    let server = Server::start(|mut peer| {
        while let Some(request) = peer.read_request() {
            if request.starts_with("POST") {
                return;
            }
            peer.write(OK);
        }
    });
    let mut settings = at(&[server.port()]);
    settings.check = Some(Check {
        path: "/healthz".parse().unwrap(),
        interval: Duration::from_secs(1),
        timeout: LONG,
        healthy: 1,
        unhealthy: 1,
        success: false,
    });
    let agent = Arc::new(agent_of(&settings));
    for _ in 0..3 {
        post(&agent).await.err().unwrap();
    }
    let breaker = || agent.room.status().addresses[0].breaker;
    agent.chore().unwrap().await;
    assert_eq!(breaker(), Breaker::Open, "its time is not over");
    later(6).await;
    agent.chore().unwrap().await;
    assert_eq!(breaker(), Breaker::Closed);
}

/// Says what it is told to; nothing is an error.
#[derive(Default)]
struct Script(Mutex<Vec<u16>>);

impl Resolver for Script {
    fn resolve(&self, host: &str, port: u16) -> Answer {
        assert_eq!((host, port), ("agent.test", 9));
        let ports = self.0.lock().unwrap().clone();
        let found: Vec<_> = ports
            .iter()
            .map(|port| SocketAddr::from(([127, 0, 0, 1], *port)))
            .collect();
        Box::pin(std::future::ready(if found.is_empty() {
            Err(io::Error::other("no answer"))
        } else {
            Ok(found)
        }))
    }
}

fn named(script: &Arc<Script>) -> Settings {
    let mut settings = settings("http://agent.test:9");
    settings.lookup = Lookup::By(script.clone());
    settings
}

#[tokio::test]
async fn a_name_is_looked_up_now_and_then_and_follows() {
    let servers = [well(), well()];
    let script = Arc::new(Script::default());
    let agent = Arc::new(agent_of(&named(&script)));
    let addresses = || {
        let all = agent.room.status().addresses;
        all.into_iter().map(|a| a.address).collect::<Vec<_>>()
    };
    let label = |server: &Server| format!("127.0.0.1:{}", server.port());
    assert_eq!(addresses(), ["agent.test:9"]);
    agent.chore().unwrap().await;
    assert_eq!(addresses(), ["agent.test:9"], "nothing was found");
    assert!(matches!(
        sent(&agent, Whose::default()).await,
        Err(Error::Unreachable(_))
    ));
    for (ports, wanted) in [
        (vec![servers[0].port()], vec![label(&servers[0])]),
        (vec![], vec![label(&servers[0])]),
        (vec![servers[1].port()], vec![label(&servers[1])]),
    ] {
        *script.0.lock().unwrap() = ports;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(34)).await;
        tokio::time::resume();
        agent.chore().unwrap().await;
        assert!(agent.chore().is_none());
        assert_eq!(addresses(), wanted);
        sent(&agent, Whose::default()).await.unwrap();
    }
    assert_eq!((servers[0].seen(), servers[1].seen()), (2, 1));
}

#[tokio::test]
async fn a_name_is_looked_up_at_once_when_nobody_is_where_it_was() {
    let server = well();
    let script = Arc::new(Script(Mutex::new(vec![nobody()])));
    let agent = Arc::new(agent_of(&named(&script)));
    agent.chore().unwrap().await;
    *script.0.lock().unwrap() = vec![server.port()];
    // Just now it was looked up.
    let first = sent(&agent, Whose::default()).await;
    assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    sent(&agent, Whose::default()).await.unwrap();
    assert_eq!(server.seen(), 1);
}

#[tokio::test]
async fn http2_goes_to_all_addresses() {
    let servers = [Server::start_http2(), Server::start_http2()];
    let mut settings = at(&servers.each_ref().map(Server::port));
    settings.http2 = true;
    let agent = agent_of(&settings);
    let calls = (0..20).map(|_| post(&agent));
    for answer in futures_util::future::join_all(calls).await {
        whole(answer.unwrap()).await.unwrap();
    }
    assert!(servers.iter().all(|server| server.seen() > 3));
    assert!(servers.iter().all(|server| server.accepted() == 1));
}
