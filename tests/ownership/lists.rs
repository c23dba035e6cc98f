//! Lists hold what is the caller's: filtered, refilled, and with page tokens that are of no use to others.
use serde_json::{Value, json};

use crate::{
    attacks::refused,
    people::{BY_TENANT, asks, gateway},
    support::{
        PATIENCE,
        agent::{Agent, Asked},
        client::Answer,
        desk,
        gateway::Gateway,
        message::Refusal,
        seen::Seen,
        stage::{ANN, BINDINGS, BOB, Who},
        words::{J03, J10, R03K, R10},
    },
    words::{list, message},
};

/// Makes all these tasks somebody's, by one stream that tells of them.
pub(crate) fn all_are_of(gateway: &Gateway, agent: &Agent, who: Who, tasks: &[String]) {
    let request = message(J10, true, &json!({}), &json!({}));
    let mut client = asks(gateway, who, &request);
    let mut seen = Seen::read(agent.next());
    seen.call.begin();
    for task in tasks {
        seen.turns(task, &format!("c-{}", who.token), "COMPLETED");
    }
    seen.call.end();
    client.head();
    assert_eq!(client.rest().len(), tasks.len());
}

/// A page that the agent was asked for: from where, and how many.
fn page_of(asked: &Asked) -> (Option<usize>, Option<usize>) {
    let of_token = |token: &str| token.strip_prefix("from-").unwrap().parse().unwrap();
    if let Ok(body) = serde_json::from_str::<Value>(&asked.body) {
        assert_eq!(body["method"], "ListTasks");
        let params = &body["params"];
        let size = params["pageSize"].as_u64();
        let size = size.map(|size| usize::try_from(size).unwrap());
        return (params["pageToken"].as_str().map(of_token), size);
    }
    assert!(asked.is("GET /tasks"), "{asked:?}");
    let target = asked.head.line.split(' ').nth(1).unwrap();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let named = |name| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let size = named("pageSize").map(|size| size.parse().unwrap());
    (named("pageToken").map(of_token), size)
}

/// Somebody lists, and the agent has these tasks. Also how many pages the agent was asked for.
pub(crate) fn lists(
    (gateway, agent, rest): (&Gateway, &Agent, bool),
    who: Who,
    with: &[(&str, &str)],
    all: &[String],
) -> (Answer, usize) {
    let mut client = asks(gateway, who, &list(who.speak, with));
    let start = tokio::time::Instant::now();
    let mut pages = 0;
    while client.wire.is_open() {
        assert!(start.elapsed() < PATIENCE, "no answer");
        let Some(call) = agent.next_soon() else {
            continue;
        };
        pages += 1;
        let (from, size) = page_of(&call.asked);
        let (from, size) = (from.unwrap_or(0), size.unwrap_or(50));
        let to = all.len().min(from + size);
        let tasks: Vec<Value> = all[from..to]
            .iter()
            .map(|id| desk::task(id, "c1", "COMPLETED"))
            .collect();
        let next = if to < all.len() {
            format!("from-{to}")
        } else {
            String::new()
        };
        let page = json!({"tasks": tasks, "nextPageToken": next, "pageSize": size,
            "totalSize": all.len()});
        call.json(&desk::said(rest, &page));
    }
    (client.answer(), pages)
}

fn page(speak: crate::support::words::Speak, answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{answer:?}");
    let value = answer.json();
    if speak.is_rpc() {
        value["result"].clone()
    } else {
        value
    }
}

fn ids(page: &Value) -> Vec<String> {
    let tasks = page["tasks"].as_array().unwrap();
    let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
    tasks.iter().map(id).collect()
}

fn numbered(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name}-{n}")).collect()
}

/// All pages of somebody's list, with so many in each.
fn walk(
    stage: (&Gateway, &Agent, bool),
    who: Who,
    size: &str,
    all: &[String],
    foreign: &str,
) -> Vec<Value> {
    let mut pages: Vec<Value> = vec![];
    loop {
        let last = pages.last().map(|page| page["nextPageToken"].clone());
        let token = last.as_ref().and_then(Value::as_str).unwrap_or_default();
        if last.is_some() && token.is_empty() {
            return pages;
        }
        let with = [("pageSize", size), ("pageToken", token)];
        let with = if token.is_empty() {
            &with[..1]
        } else {
            &with[..]
        };
        let (answer, _) = lists(stage, who, with, all);
        assert!(!answer.body.contains(foreign), "{answer:?}");
        assert!(!answer.body.contains("from-"), "the agent's own token");
        pages.push(page(who.speak, &answer));
        assert!(pages.len() < 100, "it never ends");
    }
}

#[test]
fn everybody_sees_their_own_tasks_once_in_full_pages() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let more = format!("{BY_TENANT}dialects: {{v03_list_tasks: true}}");
        let gateway = gateway(&agent, rest, &more);
        let (ann, bob) = (numbered("ann", 130), numbered("bob", 65));
        all_are_of(&gateway, &agent, ANN, &ann);
        all_are_of(&gateway, &agent, BOB, &bob);
        // Two of hers, one of his, and some of nobody.
        let mut all = vec![];
        for (n, his) in bob.iter().enumerate() {
            let hers = ann[2 * n..2 * n + 2].iter().cloned();
            all.extend(hers.chain([his.clone(), format!("nobody-{n}")]));
        }
        let stage = (&gateway, &agent, rest);
        for (who, own, foreign) in [(ANN, &ann, "bob-"), (BOB, &bob, "ann-")] {
            for speak in [J10, R10, J03, R03K] {
                let who = who.speaking(speak);
                for size in ["7", "50", "100"] {
                    let pages = walk(stage, who, size, &all, foreign);
                    let told: Vec<String> = pages.iter().flat_map(ids).collect();
                    assert_eq!(&told, own, "{who:?} {size}");
                    let most: usize = size.parse().unwrap();
                    for page in &pages[..pages.len() - 1] {
                        assert_eq!(ids(page).len(), most, "{who:?} {size}");
                        assert!(page["totalSize"].as_u64().unwrap() <= own.len() as u64);
                    }
                    let last = pages.last().unwrap();
                    assert_eq!(last["totalSize"], own.len(), "{who:?} {size}");
                    assert_eq!(last["pageSize"], most);
                }
            }
        }
    }
}

#[test]
fn pages_of_one_are_filled_one_by_one() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    let (ann, bob) = (numbered("ann", 5), numbered("bob", 5));
    all_are_of(&gateway, &agent, ANN, &ann);
    all_are_of(&gateway, &agent, BOB, &bob);
    let all: Vec<String> = bob.iter().chain(&ann).cloned().collect();
    let pages = walk((&gateway, &agent, false), ANN, "1", &all, "bob-");
    let told: Vec<String> = pages.iter().flat_map(ids).collect();
    assert_eq!(told, ann);
    for (n, page) in pages.iter().enumerate() {
        assert_eq!(page["totalSize"], n + 1);
    }
}

#[test]
fn a_page_is_looked_for_in_ten_pages_of_the_agent_at_most() {
    for rest in BINDINGS {
        let agent = Agent::start();
        let gateway = gateway(&agent, rest, BY_TENANT);
        let mut all = numbered("nobody", 620);
        all_are_of(&gateway, &agent, BOB, &["bob-0".to_owned()]);
        all.push("bob-0".to_owned());
        let stage = (&gateway, &agent, rest);
        for speak in [J10, R10] {
            let bob = BOB.speaking(speak);
            let (answer, pages) = lists(stage, bob, &[("pageSize", "10")], &all);
            assert_eq!(pages, 10);
            let first = page(speak, &answer);
            assert_eq!((ids(&first).len(), &first["totalSize"]), (0, &json!(0)));
            let token = first["nextPageToken"].as_str().unwrap();
            let with = [("pageSize", "10"), ("pageToken", token)];
            let (answer, pages) = lists(stage, bob, &with, &all);
            assert_eq!(pages, 3);
            let last = page(speak, &answer);
            assert_eq!(ids(&last), ["bob-0"]);
            assert_eq!(
                (&last["totalSize"], &last["nextPageToken"]),
                (&json!(1), &json!(""))
            );
        }
    }
}

#[test]
fn a_page_token_is_of_use_to_its_owner_alone() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    let ann = numbered("ann", 60);
    all_are_of(&gateway, &agent, ANN, &ann);
    let stage = (&gateway, &agent, false);
    let (answer, _) = lists(stage, ANN, &[("pageSize", "5")], &ann);
    let first = page(J10, &answer);
    let token = first["nextPageToken"].as_str().unwrap();
    for speak in [J10, R10] {
        let with = [("pageToken", token)];
        let refusal: Refusal = refused(&gateway, &agent, BOB.speaking(speak), &list(speak, &with));
        refusal.is_told_as_bad(speak);
        for bad in ["from-50", "AAAA", &token[1..]] {
            let with = [("pageToken", bad)];
            let refusal = refused(&gateway, &agent, ANN.speaking(speak), &list(speak, &with));
            refusal.is_told_as_bad(speak);
        }
        // A colleague goes on where she was.
        let cid = crate::people::CID.speaking(speak);
        let (answer, _) = lists(stage, cid, &[("pageSize", "5"), ("pageToken", token)], &ann);
        assert_eq!(ids(&page(speak, &answer)), ann[5..10]);
    }
}

#[test]
fn what_is_nobody_s_is_listed_where_everybody_may_see_it() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, "ownership: {by: tenant, unknown: allow}");
    all_are_of(&gateway, &agent, ANN, &["ann-0".to_owned()]);
    let all = ["ann-0".to_owned(), "nobody-0".to_owned()];
    let stage = (&gateway, &agent, false);
    let (answer, _) = lists(stage, BOB, &[], &all);
    assert_eq!(ids(&page(J10, &answer)), ["nobody-0"]);
    let (answer, _) = lists(stage, ANN, &[], &all);
    assert_eq!(ids(&page(J10, &answer)), all);
}

#[test]
fn an_agent_s_error_is_told_and_a_size_that_cannot_be_is_the_agent_s_to_refuse() {
    let agent = Agent::start();
    let gateway = gateway(&agent, false, BY_TENANT);
    for size in ["0", "101"] {
        let mut client = asks(&gateway, ANN, &list(J10, &[("pageSize", size)]));
        let call = agent.next();
        let params = &call.asked.json()["params"];
        assert_eq!(params["pageSize"].to_string(), size);
        call.json(&desk::error(
            false,
            (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
        ));
        assert_eq!(client.answer().json()["error"]["code"], -32602);
    }
}
