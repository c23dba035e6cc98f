//! A card says what the gateway asks for.
use serde_json::{Value, json};

use crate::{
    house::{House, file, keys_way, usual_keys},
    issuer::{Issuer, Pair},
    support::agent::{Asked, answer},
};

/// The agent's card, which asks for something itself.
fn house(auth: &str, asks: bool) -> House {
    let mut card = json!({
        "name": "n", "description": "d", "version": "1", "capabilities": {},
        "defaultInputModes": [], "defaultOutputModes": [],
        "supportedInterfaces": [{"url": "http://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "skills": [{"id": "s", "name": "s", "description": "d", "tags": []}],
    });
    if asks {
        let needed = json!([{"schemes": {"own": {"list": []}}}]);
        card["securitySchemes"] =
            json!({"own": {"apiKeySecurityScheme": {"location": "header", "name": "X"}}});
        card["securityRequirements"] = needed.clone();
        card["skills"][0]["securityRequirements"] = needed;
    }
    let card = card.to_string();
    let says = move |_: &Asked| answer(200, "content-type: application/json\r\n", &card);
    House::before(says, "", &format!("auth: [{auth}]"))
}

fn card(house: &House, version: &str) -> Value {
    let line = "GET /.well-known/agent-card.json";
    // Nobody needs a credential to read what is needed.
    let answer = house
        .gateway
        .ask(line, &format!("a2a-version: {version}\r\n"), "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()
}

#[test]
fn it_asks_for_what_the_gateway_asks_for() {
    let keys = file(&usual_keys());
    let issuer = Issuer::with(&[Pair::new("one")]);
    let house = house(&format!("{}, {}", keys_way(&keys), issuer.way()), true);
    let new = card(&house, "1.0");
    assert_eq!(
        new["securitySchemes"],
        json!({
            "gateway-x-api-key": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}},
            "gateway-bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
        })
    );
    let either = json!([
        {"schemes": {"gateway-x-api-key": {"list": []}}}, {"schemes": {"gateway-bearer": {"list": []}}},
    ]);
    assert_eq!(new["securityRequirements"], either);
    assert_eq!(new["skills"][0].get("securityRequirements"), None);
    let old = card(&house, "0.3");
    let scheme = &old["securitySchemes"]["gateway-x-api-key"];
    assert_eq!(
        (&scheme["type"], &scheme["in"]),
        (&json!("apiKey"), &json!("header"))
    );
    assert_eq!(old["securitySchemes"]["gateway-bearer"]["scheme"], "bearer");
    assert_eq!(
        old["security"],
        json!([{"gateway-x-api-key": []}, {"gateway-bearer": []}])
    );
}

#[test]
fn where_the_agent_decides_as_well_both_are_said() {
    let issuer = Issuer::with(&[Pair::new("one")]);
    let way = issuer.way();
    let asks = card(&house(&format!("{way}, passthrough"), true), "1.0");
    let schemes = asks["securitySchemes"].as_object().unwrap();
    assert_eq!(
        schemes["gateway-bearer"]["httpAuthSecurityScheme"]["bearerFormat"],
        "JWT"
    );
    assert!(schemes.contains_key("own"));
    assert_eq!(asks["securityRequirements"].as_array().unwrap().len(), 2);
    assert!(asks["skills"][0].get("securityRequirements").is_some());
    // The agent asks for nothing: so nothing is needed.
    let open = card(&house(&format!("{way}, passthrough"), false), "1.0");
    assert_eq!(open.get("securityRequirements"), None);
    // Nothing is enough.
    let anyone = card(&house(&format!("{way}, anyone"), true), "1.0");
    let needed = anyone["securityRequirements"].as_array().unwrap();
    assert_eq!(needed.len(), 2);
    assert_eq!(needed[1], json!({"schemes": {}}));
    let only = card(&house("passthrough", true), "1.0");
    assert_eq!(only["securitySchemes"].as_object().unwrap().len(), 1);
}
