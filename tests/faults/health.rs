//! Addresses that are asked how they are, and who can read what came of it.
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use crate::{
    proxy::{Fault, Proxy},
    scene::{Ended, Place, answer, at_rest, gateway, send, status, until_up},
    support::{
        agent::{self, Agent},
        gateway::Gateway,
        message::Message,
        words::J10,
    },
};

const CHECKED: &str = "health: {path: /healthz, interval: 100ms, healthy: 1, unhealthy: 2}";

#[test]
fn an_address_that_says_it_is_ill_gets_no_calls() {
    let ill = Arc::new(AtomicBool::new(false));
    let for_agent = ill.clone();
    let (agent, log) = Agent::always(move |asked| {
        if asked.is("GET /healthz") && for_agent.load(SeqCst) {
            return agent::answer(503, "", "");
        }
        answer(asked, "a")
    });
    let a = Place {
        log,
        proxy: Proxy::before(agent),
    };
    let b = Place::of("b");
    let gateway = gateway(&[&a, &b], CHECKED, "");
    ill.store(true, SeqCst);
    until_up(&gateway, &a, false);
    let before = a.messages().len();
    for round in 0..20 {
        let id = format!("m-{round}");
        assert_eq!(send(&gateway, J10, Message::send(&id)), Ended::Well);
    }
    assert_eq!(a.messages().len(), before);
    ill.store(false, SeqCst);
    until_up(&gateway, &a, true);
    for round in 0..40 {
        let id = format!("n-{round}");
        assert_eq!(send(&gateway, J10, Message::send(&id)), Ended::Well);
    }
    assert!(a.messages().len() > before);
    at_rest(&gateway);
}

#[test]
fn a_lone_address_is_asked_but_never_left_alone() {
    let a = Place::of("a");
    let gateway = Gateway::with(a.proxy.addr, CHECKED, "");
    a.proxy.does(Fault::Refuse);
    until_up(&gateway, &a, false);
    a.proxy.does(Fault::None);
    assert_eq!(send(&gateway, J10, Message::send("m1")), Ended::Well);
    until_up(&gateway, &a, true);
}

#[test]
fn readiness_tells_of_addresses_and_heeds_them_only_where_it_is_to() {
    for (readiness, wanted) in [(false, 200), (true, 503)] {
        let a = Place::of("a");
        let health = format!("health: {{readiness: {readiness}}}");
        let gateway = Gateway::with(a.proxy.addr, &health, "admin: 127.0.0.1:0");
        let ready = || gateway.ask_admin("GET /readyz", "").status();
        assert_eq!(ready(), 200);
        a.proxy.does(Fault::Refuse);
        for round in 0..3 {
            let id = format!("m-{round}");
            let unreachable = Ended::Fault("BACKEND_UNREACHABLE".to_owned());
            assert_eq!(send(&gateway, J10, Message::send(&id)), unreachable);
        }
        assert!(status(&gateway).is_down());
        assert_eq!(ready(), wanted);
        let page = gateway.ask_admin("GET /readyz?verbose", "");
        let line = format!("backend {} down breaker=open", a.proxy.addr);
        assert!(page.body.contains(&line), "{page:?}");
        a.proxy.does(Fault::None);
        assert_eq!(send(&gateway, J10, Message::send("back")), Ended::Well);
        assert_eq!(ready(), 200);
    }
}
