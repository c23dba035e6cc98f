//! Metrics as a collector gets them, without anybody who scrapes.
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, metric::Data, number_data_point::Value,
};

use crate::support::{
    agent::Agent,
    collector::{Collector, attribute},
    gateway::Gateway,
    until,
    words::{self, J10},
};

#[test]
fn metrics_are_pushed_by_their_instruments_names() {
    let (agent, collector) = (Agent::start(), Collector::start());
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!(
            "telemetry: {{service: edge, resource: {{team: memory}}, metrics: {{otlp: true, interval: 20ms}}, \
             otlp: {{endpoint: '{}'}}}}\n",
            collector.endpoint()
        ),
    );
    let (line, body) = J10.get();
    let mut client = gateway.client();
    client.send(line, "", &body);
    agent.next().json(&words::result(words::TASK));
    client.answer();
    until("the call is counted", || {
        collector.metrics().iter().any(|m| calls(m) == Some(1.0))
    });
    let all = collector.metrics();
    let took = all.iter().find(|m| m.name == "a2a.gateway.call.duration");
    let Some(Data::Histogram(took)) = &took.unwrap().data else {
        panic!("no histogram")
    };
    assert_eq!(took.data_points[0].count, 1);
    let resource = &collector.resources()[0];
    for (name, value) in [("service.name", "edge"), ("team", "memory")] {
        assert_eq!(attribute(resource, name).as_deref(), Some(value));
    }
}

fn calls(metric: &Metric) -> Option<f64> {
    let Some(Data::Sum(sum)) = &metric.data else {
        return None;
    };
    if metric.name != "a2a.gateway.calls" || sum.data_points.is_empty() {
        return None;
    }
    assert!(sum.is_monotonic);
    let cumulative = AggregationTemporality::Cumulative as i32;
    assert_eq!(sum.aggregation_temporality, cumulative);
    match sum.data_points[0].value {
        Some(Value::AsDouble(value)) => Some(value),
        _ => None,
    }
}
