//! A conversation stays with one address while that lives.
use crate::{
    proxy::Fault,
    scene::{Ended, Place, at_rest, fields, gateway, send},
    support::{
        gateway::Gateway,
        message::Message,
        words::{J10, R10},
    },
};

fn who(places: &[Place], id: &str) -> usize {
    let has = |place: &Place| place.messages().iter().any(|known| known == id);
    let found = places.iter().position(has);
    found.unwrap_or_else(|| panic!("nobody saw {id}"))
}

fn three() -> ([Place; 3], Gateway) {
    let all = [Place::of("a"), Place::of("b"), Place::of("c")];
    let gateway = gateway(&all.iter().collect::<Vec<_>>(), "", "");
    (all, gateway)
}

#[test]
fn what_a_client_names_stays_and_moves_only_when_its_address_is_gone() {
    let (all, gateway) = three();
    let mut homes = vec![];
    for talk in 0..12 {
        let context = format!("talk-{talk}");
        let mut seen = vec![];
        for round in 0..4 {
            let id = format!("m-{talk}-{round}");
            let message = Message::send(&id).of(&context);
            assert_eq!(send(&gateway, R10, message), Ended::Well);
            seen.push(who(&all, &id));
        }
        assert!(seen.iter().all(|at| *at == seen[0]), "{context}: {seen:?}");
        homes.push(seen[0]);
    }
    let gone = homes[0];
    assert!(homes.iter().any(|home| *home != gone), "they are spread");
    all[gone].proxy.does(Fault::Refuse);
    for (talk, home) in homes.iter().enumerate() {
        let (context, id) = (format!("talk-{talk}"), format!("n-{talk}"));
        let message = Message::send(&id).of(&context);
        assert_eq!(send(&gateway, J10, message), Ended::Well);
        let now = who(&all, &id);
        assert!(now == *home || *home == gone, "{context} moved");
        assert_ne!(now, gone);
    }
    at_rest(&gateway);
}

#[test]
fn what_the_agent_names_is_found_again() {
    let (all, gateway) = three();
    for (round, stream) in (0..16).map(|round| (round, round % 2 == 0)) {
        let id = format!("m-{round}");
        let message = if stream {
            Message::stream(&id)
        } else {
            Message::send(&id)
        };
        assert_eq!(send(&gateway, R10, message), Ended::Well);
        let home = who(&all, &id);
        let name = ["a", "b", "c"][home];
        let asked = all[home].questions();
        let line = format!("GET /tasks/t-{name}-{id}");
        let answer = gateway.ask(&line, &fields(R10), "");
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert_eq!(all[home].questions(), asked + 1, "another was asked");
        let (context, next) = (format!("c-{name}-{id}"), format!("n-{round}"));
        let message = Message::send(&next).of(&context);
        assert_eq!(send(&gateway, J10, message), Ended::Well);
        assert_eq!(who(&all, &next), home, "its context is elsewhere");
    }
    at_rest(&gateway);
}

#[test]
fn without_affinity_one_conversation_is_spread() {
    let all = [Place::of("a"), Place::of("b"), Place::of("c")];
    let gateway = gateway(&all.iter().collect::<Vec<_>>(), "affinity: none", "");
    for round in 0..30 {
        let id = format!("m-{round}");
        let message = Message::send(&id).of("talk");
        assert_eq!(send(&gateway, J10, message), Ended::Well);
    }
    assert!(all.iter().all(|place| !place.messages().is_empty()));
}
