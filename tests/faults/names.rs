//! Where names lead changes while calls run.
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use a2a_gateway::{
    agent::{Answer, Lookup, Resolver},
    config::{Config, Overrides},
    reload::Source,
    run,
};

use crate::{
    proxy::Fault,
    scene::{Ended, Place, at_rest, send, status},
    support::{
        agent::Agent,
        gateway::Gateway,
        message::Message,
        until,
        words::{DONE, J10, WORKING, result},
    },
};

/// A resolver that says what the test says; `None` fails.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Option<Vec<SocketAddr>>>>);

impl Script {
    fn says(&self, addresses: &[SocketAddr]) {
        *self.0.lock().unwrap() = Some(addresses.to_vec());
    }

    fn fails(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl Resolver for Script {
    fn resolve(&self, host: &str, _: u16) -> Answer {
        assert_eq!(host, "agent.test", "addresses are not looked up");
        let answer = self.0.lock().unwrap().clone();
        let answer = answer.ok_or_else(|| io::Error::other("the resolver is away"));
        Box::pin(std::future::ready(answer))
    }
}

fn gateway(script: &Script, more: &str) -> Gateway {
    let yaml = format!(
        "listen: 127.0.0.1:0\nworkers: 2\nbackend: {{url: 'http://agent.test:9', resolve: 100ms, {more}}}"
    );
    let config = Config::parse(&yaml, Overrides::default()).unwrap();
    let lookup = Lookup::By(Arc::new(script.clone()));
    Gateway::serving(run::start_looking_up(config, Source::default(), &lookup).unwrap())
}

fn until_addresses(gateway: &Gateway, addresses: &[SocketAddr]) {
    let mut wanted: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    wanted.sort();
    until("the addresses are known", || {
        let status = status(gateway);
        let mut known: Vec<_> = status.addresses.iter().map(|a| a.address.clone()).collect();
        known.sort();
        known == wanted
    });
}

#[test]
fn a_change_moves_new_calls_and_the_last_good_answer_stands() {
    let (a, b) = (Place::of("a"), Place::of("b"));
    let script = Script::default();
    script.says(&[a.proxy.addr]);
    let gateway = gateway(&script, "");
    until_addresses(&gateway, &[a.proxy.addr]);
    assert_eq!(send(&gateway, J10, Message::send("m1")), Ended::Well);
    assert_eq!(a.messages(), ["m1"]);

    script.says(&[b.proxy.addr]);
    until_addresses(&gateway, &[b.proxy.addr]);
    assert_eq!(send(&gateway, J10, Message::send("m2")), Ended::Well);
    assert_eq!(b.messages(), ["m2"]);
    until("the old connections are closed", || a.proxy.open() == 0);

    script.fails();
    for round in 0..5 {
        let id = format!("n-{round}");
        assert_eq!(send(&gateway, J10, Message::send(&id)), Ended::Well);
    }
    assert_eq!(b.messages().len(), 6);

    script.says(&[a.proxy.addr, b.proxy.addr]);
    until_addresses(&gateway, &[a.proxy.addr, b.proxy.addr]);
    at_rest(&gateway);
}

#[test]
fn a_stream_ends_where_it_began() {
    let old = Agent::start();
    let b = Place::of("b");
    let script = Script::default();
    script.says(&[old.addr]);
    let gateway = gateway(&script, "");
    until_addresses(&gateway, &[old.addr]);
    let mut client = gateway.client();
    let (line, body) = Message::stream("m1").words(J10);
    client.send(line, &crate::scene::fields(J10), &body);
    let mut call = old.next();
    call.begin();
    call.event(&result(WORKING));
    client.head();
    assert!(client.event().unwrap().contains("WORKING"));

    script.says(&[b.proxy.addr]);
    until_addresses(&gateway, &[b.proxy.addr]);
    assert_eq!(send(&gateway, J10, Message::send("m2")), Ended::Well);
    call.event(&result(DONE));
    assert!(client.event().unwrap().contains("COMPLETED"));
    call.write("0\r\n\r\n");
    assert_eq!(client.rest(), Vec::<String>::new());
    call.closed();
    at_rest(&gateway);
}

/// Never answers.
struct Hangs(Arc<AtomicBool>);

impl Resolver for Hangs {
    fn resolve(&self, _: &str, _: u16) -> Answer {
        self.0.store(true, SeqCst);
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_look_up_is_nobodys_call_and_holds_up_no_drain() {
    let yaml = "listen: 127.0.0.1:0\nworkers: 1\ndrain: {delay: 0s, grace: 1h}\n\
                limits: {connect: 1h}\nbackend: {url: 'http://agent.test:9'}";
    let config = Config::parse(yaml, Overrides::default()).unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let lookup = Lookup::By(Arc::new(Hangs(asked.clone())));
    let served = run::start_looking_up(config, Source::default(), &lookup).unwrap();
    until("the resolver is asked", || asked.load(SeqCst));
    assert_eq!(served.running.followers()(), 0);
    served.running.drain();
    assert!(served.running.wait().clean());
}

#[test]
fn who_moved_without_a_word_is_looked_up_at_once() {
    let (a, b) = (Place::of("a"), Place::of("b"));
    let script = Script::default();
    script.says(&[a.proxy.addr]);
    // Long enough that nobody looks it up by the clock; but looked up it was within the last second.
    let yaml =
        "listen: 127.0.0.1:0\nworkers: 1\nbackend: {url: 'http://agent.test:9', resolve: 1h}";
    let config = Config::parse(yaml, Overrides::default()).unwrap();
    let lookup = Lookup::By(Arc::new(script.clone()));
    let gateway =
        Gateway::serving(run::start_looking_up(config, Source::default(), &lookup).unwrap());
    until_addresses(&gateway, &[a.proxy.addr]);
    script.says(&[b.proxy.addr]);
    a.proxy.does(Fault::Refuse);
    let mut round = 0;
    until("it is found where it is now", || {
        round += 1;
        let id = format!("m-{round}");
        let ended = send(&gateway, J10, Message::send(&id));
        ended == Ended::Well
    });
    assert_eq!(b.messages().len(), 1);
    at_rest(&gateway);
}
