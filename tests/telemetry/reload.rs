//! What a scrape says before and after settings are read again.
use a2a_gateway::reload::Said;
use tempfile::TempDir;

use crate::{
    program::{TOKEN, write},
    scrape::{ADMIN, Scrape, until_scraped},
    support::{
        agent::{Agent, answer},
        gateway::Gateway,
        words::{self, J10},
    },
};

const CALLS: &str = "a2a_gateway_calls_total";
const TOOK: &str = "a2a_gateway_call_duration_seconds_count";
const RELOADS: &str = "a2a_gateway_reloads_total";
const VALID: &str = "a2a_gateway_config_valid";
const LAST: &str = "a2a_gateway_config_last_reload_time_seconds";

struct Place {
    folder: TempDir,
    agent: String,
    gateway: Gateway,
}

impl Place {
    fn new(routes: &[&str]) -> Self {
        let whole = answer(
            200,
            "content-type: application/json\r\n",
            words::result(words::TASK),
        );
        let (agent, _) = Agent::always(move |_| whole.clone());
        let (folder, agent) = (TempDir::new().unwrap(), agent.to_string());
        let file = write(folder.path(), &settings(&folder, &agent, routes));
        let gateway = Gateway::from_file(&file);
        Self {
            folder,
            agent,
            gateway,
        }
    }

    /// The status of the answer to a reload of these.
    fn reload(&self, yaml: &str) -> u16 {
        write(self.folder.path(), yaml);
        let fields = format!("authorization: Bearer {TOKEN}\r\n");
        let answer = self.gateway.ask_admin("POST /v1/reload", &fields);
        answer.status()
    }

    fn routes(&self, routes: &[&str]) {
        let status = self.reload(&settings(&self.folder, &self.agent, routes));
        assert_eq!(status, 200);
    }

    fn call(&self, path: &str) -> u16 {
        let (_, body) = J10.get();
        self.gateway
            .ask(&format!("POST {path}"), "", &body)
            .status()
    }

    /// Waits until so many calls of a route have been counted.
    fn counted(&self, route: &str, calls: f64) {
        let labels = [("route", route), ("outcome", "ok")];
        let scrape = until_scraped(&self.gateway, CALLS, &labels, calls);
        let took = scrape.value(TOOK, &[("route", route)]);
        assert!((took - calls).abs() < 1e-9, "{route}: {took}");
    }
}

fn settings(folder: &TempDir, agent: &str, routes: &[&str]) -> String {
    let token = folder.path().join("token");
    let routes = routes.iter();
    let routes = routes.map(|path| format!("{{path: {path}, backend: 'http://{agent}'}}, "));
    format!(
        "listen: 127.0.0.1:0\nworkers: 1\n{ADMIN}admin_token_file: '{}'\nroutes: [{}]\n",
        token.display(),
        routes.collect::<String>()
    )
}

#[test]
fn counters_go_on_over_a_reload_and_a_new_route_has_its_own() {
    let place = Place::new(&["/one"]);
    for _ in 0..3 {
        assert_eq!(place.call("/one"), 200);
    }
    place.counted("/one", 3.0);
    assert_eq!(place.call("/two"), 404);
    place.routes(&["/one", "/two"]);
    place.counted("/one", 3.0);
    for path in ["/one", "/two", "/two"] {
        assert_eq!(place.call(path), 200);
    }
    place.counted("/one", 4.0);
    place.counted("/two", 2.0);
    // One that is there no more keeps its count, for when it comes again.
    place.routes(&["/two"]);
    place.counted("/one", 4.0);
    assert_eq!(place.call("/one"), 404);
    place.routes(&["/one", "/two"]);
    assert_eq!(place.call("/one"), 200);
    place.counted("/one", 5.0);
    place.counted("/two", 2.0);
}

#[test]
fn reloads_and_what_the_file_is_worth_show() {
    let place = Place::new(&["/one"]);
    let good = settings(&place.folder, &place.agent, &["/two"]);
    let shows = |ok: f64, failed: f64, valid: f64| {
        let scrape = Scrape::of(&place.gateway);
        for (name, labels, value) in [
            (RELOADS, &[("result", "ok")][..], ok),
            (RELOADS, &[("result", "failed")], failed),
            (VALID, &[], valid),
        ] {
            let is = scrape.value(name, labels);
            assert!((is - value).abs() < 1e-9, "{name} {labels:?}: {is}");
        }
        scrape.value(LAST, &[])
    };
    let said = || -> Said { place.gateway.served().reloads.status().now() };
    let began = shows(0.0, 0.0, 1.0);
    assert!(began > 1.7e9, "the settings were taken when it began");
    assert_eq!(place.reload("workers: many"), 422);
    assert!((shows(0.0, 1.0, 0.0) - began).abs() < 1e-9, "not taken");
    assert_eq!(place.reload("nonsense"), 422);
    shows(0.0, 2.0, 0.0);
    assert_eq!(place.reload(&good), 200);
    assert!(shows(1.0, 2.0, 1.0) >= began);
    assert_eq!((said().ok, said().failed), (1, 2));
}
