//! Conversations stay where they are, whatever happens to the list of addresses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;

use super::server::Server;
use super::{LONG, OK, request, settings, whole};
use crate::agent::{Agent, Answer, Lookup, Resolver, Room, Settings};

/// Says what it is told to.
#[derive(Default)]
struct Script(Mutex<Vec<SocketAddr>>);

impl Script {
    fn says(&self, addresses: &[SocketAddr]) {
        *self.0.lock().unwrap() = addresses.to_vec();
    }
}

impl Resolver for Script {
    fn resolve(&self, _: &str, _: u16) -> Answer {
        Box::pin(std::future::ready(Ok(self.0.lock().unwrap().clone())))
    }
}

fn named(script: &Arc<Script>) -> Settings {
    let mut settings = settings("http://agent.test:9");
    settings.lookup = Lookup::By(script.clone());
    settings
}

fn well() -> Server {
    Server::start(|mut peer| {
        while peer.read_request().is_some() {
            peer.write(OK);
        }
    })
}

fn at(server: &Server) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}

fn agent_in(room: &Room, settings: &Settings) -> Arc<Agent> {
    Arc::new(Agent::new(settings, room.clone()).unwrap())
}

async fn looks(agent: &Arc<Agent>) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(34)).await;
    tokio::time::resume();
    agent.chore().unwrap().await;
}

/// Eight conversations that the agent names.
async fn talk(agent: &Agent) {
    for talk in 0..8 {
        let answer = agent.send(request(Method::POST), LONG, false).await;
        let mut answer = answer.unwrap();
        let mut homing = agent.homing(answer.body_mut()).unwrap();
        homing.learn(Some(&format!("talk-{talk}")), None);
        whole(answer).await.unwrap();
    }
}

async fn go_on(agent: &Agent) {
    for talk in 0..8 {
        let whose = agent.whose(Some(&format!("talk-{talk}")), None);
        let answer = agent.send_for(whose, request(Method::POST), LONG, false);
        whole(answer.await.unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn what_began_at_an_only_address_stays_when_others_come() {
    let (a, b) = (well(), well());
    let script = Arc::new(Script::default());
    script.says(&[at(&a)]);
    let settings = named(&script);
    let agent = agent_in(&Room::new(&settings), &settings);
    looks(&agent).await;
    talk(&agent).await;
    script.says(&[at(&a), at(&b)]);
    looks(&agent).await;
    go_on(&agent).await;
    assert_eq!((a.seen(), b.seen()), (16, 0));
}

#[tokio::test]
async fn an_address_that_comes_back_has_its_conversations_back() {
    let (a, b) = (well(), well());
    let script = Arc::new(Script::default());
    script.says(&[at(&a)]);
    let settings = named(&script);
    let agent = agent_in(&Room::new(&settings), &settings);
    looks(&agent).await;
    talk(&agent).await;
    for now in [vec![at(&b)], vec![at(&a), at(&b)]] {
        script.says(&now);
        looks(&agent).await;
    }
    go_on(&agent).await;
    assert_eq!((a.seen(), b.seen()), (16, 0));
}

#[tokio::test]
async fn new_settings_keep_conversations_and_what_is_known_of_addresses() {
    let (a, b) = (well(), well());
    let script = Arc::new(Script::default());
    script.says(&[at(&a)]);
    let before = named(&script);
    let room = Room::new(&before);
    let agent = agent_in(&room, &before);
    looks(&agent).await;
    talk(&agent).await;
    script.says(&[at(&a), at(&b)]);
    looks(&agent).await;
    let mut settings = before.clone();
    settings.wait = Duration::from_secs(9);
    let after = Room::after(&settings, &room);
    assert_eq!(after.status().addresses, room.status().addresses);
    assert!(
        room.set()
            .1
            .iter()
            .zip(&*after.set().1)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    );
    go_on(&agent_in(&after, &settings)).await;
    assert_eq!((a.seen(), b.seen()), (16, 0));
    // Who is reached otherwise is another, but conversations find it.
    settings.breaker.failures += 1;
    let after = Room::after(&settings, &room);
    assert!(
        !room
            .set()
            .1
            .iter()
            .zip(&*after.set().1)
            .any(|(a, b)| Arc::ptr_eq(a, b))
    );
    go_on(&agent_in(&after, &settings)).await;
    assert_eq!((a.seen(), b.seen()), (24, 0));
}

#[tokio::test]
async fn another_way_to_fall_back_makes_no_other_address() {
    let a = well();
    let script = Arc::new(Script::default());
    let other = |port| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    script.says(&[at(&a), other(1)]);
    let settings = named(&script);
    let room = Room::new(&settings);
    let agent = agent_in(&room, &settings);
    looks(&agent).await;
    let version = room.version();
    script.says(&[at(&a), other(2)]);
    looks(&agent).await;
    assert_eq!(room.version(), version);
    let (_, set) = room.set();
    let wanted = super::super::names::Ways::Known([at(&a), other(2)].into_iter().collect());
    assert_eq!(*set[0].ways(), wanted);
}

#[tokio::test]
async fn who_helps_out_does_not_become_the_home() {
    let (a, b) = (well(), well());
    let script = Arc::new(Script::default());
    script.says(&[at(&a)]);
    let settings = named(&script);
    let room = Room::new(&settings);
    let agent = agent_in(&room, &settings);
    looks(&agent).await;
    talk(&agent).await;
    script.says(&[at(&a), at(&b)]);
    looks(&agent).await;
    let (_, set) = room.set();
    let helps = set.iter().find(|one| one.label == at(&b).to_string());
    let mut homing = room.homing(helps.unwrap().name).unwrap();
    for talk in 0..8 {
        homing.learn(Some(&format!("talk-{talk}")), None);
        homing = room.homing(helps.unwrap().name).unwrap();
    }
    go_on(&agent).await;
    assert_eq!((a.seen(), b.seen()), (16, 0));
}
