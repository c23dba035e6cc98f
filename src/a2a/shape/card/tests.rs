use super::*;
use crate::a2a::answer::{Public, card};
use crate::a2a::shape::Options;

const NEW: &str = r#"{"name":"n","supportedInterfaces":[{"url":"http://agent","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"http://agent","protocolBinding":"GRPC","protocolVersion":"1.0"}],"capabilities":{"pushNotifications":true,"extendedAgentCard":true},"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}},"d":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"tokenUrl":"t"}}}}},"securityRequirements":[{"schemes":{"k":{"list":[]}}},{"schemes":{"d":{"list":[]}}}],"skills":[{"id":"s","securityRequirements":[{"schemes":{"k":{"list":["x"]}}}]}],"signatures":[{"protected":"p","signature":"s"}]}"#;

fn public(push: bool) -> Public {
    let interface = |binding, version| Interface {
        url: "https://gateway/a2a".into(),
        binding,
        version,
    };
    Public {
        interfaces: vec![
            interface("JSONRPC", "1.0"),
            interface("HTTP+JSON", "1.0"),
            interface("JSONRPC", "0.3"),
            interface("HTTP+JSON", "0.3"),
        ],
        push,
        security: None,
    }
}

fn seen(view: View, push: bool) -> serde_json::Value {
    let (text, _) = card(NEW, Some(&public(push)), view, &Options::default()).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn nobody_is_led_around_the_gateway() {
    for view in [View::V10, View::V03, View::V03Proto, View::Superset] {
        let text = seen(view, true).to_string();
        assert!(!text.contains("http://agent"), "{text}");
        assert!(
            !text.contains("GRPC") && !text.contains("signatures"),
            "{text}"
        );
    }
    let card = seen(View::V10, true);
    assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 4);
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    assert_eq!(
        seen(View::V10, false)["capabilities"]["pushNotifications"],
        false
    );
}

#[test]
fn v03_is_told_of_its_own_interfaces() {
    for view in [View::V03, View::V03Proto, View::Superset] {
        let card = seen(view, true);
        assert_eq!(card["protocolVersion"], "0.3.0");
        assert_eq!(card["url"], "https://gateway/a2a");
        assert_eq!(card["preferredTransport"], "JSONRPC");
        assert_eq!(card["additionalInterfaces"].as_array().unwrap().len(), 2);
        assert_eq!(card["additionalInterfaces"][1]["transport"], "HTTP+JSON");
        assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
        let old = view != View::Superset;
        assert_eq!(card.get("supportedInterfaces").is_none(), old);
        assert_eq!(card["capabilities"].get("extendedAgentCard").is_none(), old);
    }
}

/// One URL serves readers of both versions (decision 47), and those of v0.3 fail on a scheme without `type`.
#[test]
fn a_superset_has_the_members_of_both() {
    let card = seen(View::Superset, true);
    let both = r#"{"apiKeySecurityScheme":{"location":"header","name":"X"},"in":"header","name":"X","type":"apiKey"}"#;
    assert_eq!(
        card["securitySchemes"].to_string(),
        format!(r#"{{"k":{both}}}"#)
    );
    assert_eq!(card["security"].to_string(), r#"[{"k":[]}]"#);
    assert_eq!(
        card["securityRequirements"].to_string(),
        r#"[{"schemes":{"k":{"list":[]}}}]"#
    );
    assert_eq!(
        card["skills"][0]["security"].to_string(),
        r#"[{"k":["x"]}]"#
    );
    assert!(card["skills"][0].get("securityRequirements").is_some());
    let proto = seen(View::V03Proto, true);
    assert_eq!(
        proto["securitySchemes"].to_string(),
        format!(r#"{{"k":{both}}}"#)
    );
    let pure = seen(View::V03, true);
    assert!(
        pure["securitySchemes"]["k"]
            .get("apiKeySecurityScheme")
            .is_none()
    );
    assert!(pure["skills"][0].get("securityRequirements").is_none());
}

#[test]
fn a_superset_is_read_as_the_v10_card_that_it_is() {
    let whole = seen(View::Superset, true).to_string();
    let (back, lost) = card(&whole, None, View::V10, &Options::default()).unwrap();
    let back: serde_json::Value = serde_json::from_slice(&back).unwrap();
    let mut pure = seen(View::V10, true);
    // The flow that v0.3 lacks is gone.
    pure["securitySchemes"].as_object_mut().unwrap().remove("d");
    pure["securityRequirements"].as_array_mut().unwrap().pop();
    assert_eq!(back, pure);
    assert!(lost.is_empty());
}
