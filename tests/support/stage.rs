//! Conversations on a stage: a gateway before an agent that knows its tasks, people who talk with it, and what the
//! agent saw of them.
use super::{
    PATIENCE,
    agent::Agent,
    client::{Answer, Client},
    desk::{Ask, Desk},
    gateway::Gateway,
    message::{Message, Refusal},
    seen::Seen,
    words::{J10, Speak},
};

/// The agent's bindings: whether it is REST.
pub const BINDINGS: [bool; 2] = [false, true];

/// A caller.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub speak: Speak,
    pub token: &'static str,
}

pub const ANN: Who = Who {
    speak: J10,
    token: "ann",
};
pub const BOB: Who = Who {
    speak: J10,
    token: "bob",
};

impl Who {
    /// The same one in another dialect.
    pub fn speaking(self, speak: Speak) -> Self {
        Self { speak, ..self }
    }

    pub fn fields(self) -> String {
        format!("authorization: Bearer {}\r\n", self.token)
    }
}

/// Waits are short, where only their end matters.
pub const QUICK: &str = "conversation: {busy_grace: 20ms, settle: 100ms}";
/// Nothing becomes true by waiting.
pub const PATIENT: &str = "conversation: {busy_grace: 20ms, settle: 1h, max_hold: 2h}";

pub struct Stage {
    pub agent: Agent,
    pub desk: Desk,
    pub gateway: Gateway,
}

/// What became of a message.
pub enum Outcome {
    Reached(Seen),
    Answered(Answer),
}

impl Stage {
    pub fn set(rest: bool, yaml: &str) -> Self {
        Self::with(rest, "", yaml)
    }

    /// `backend` is more settings of it.
    pub fn with(rest: bool, backend: &str, yaml: &str) -> Self {
        Self::build(|agent| {
            let binding = if rest { "rest" } else { "jsonrpc" };
            let backend = format!("binding: {binding}, {backend}");
            Gateway::with(agent.addr, &backend, yaml)
        })
    }

    pub fn build(gateway: impl FnOnce(&Agent) -> Gateway) -> Self {
        let desk = Desk::default();
        let known = desk.clone();
        let agent = Agent::answering(move |asked| known.answer(asked));
        Self {
            gateway: gateway(&agent),
            agent,
            desk,
        }
    }

    /// Somebody sends a message.
    pub fn says(&self, who: Who, message: Message<'_>) -> Client {
        let (line, body) = message.words(who.speak);
        self.writes(who, line, &body)
    }

    pub fn writes(&self, who: Who, line: &str, body: &str) -> Client {
        let mut client = self.gateway.client();
        client.send(line, &who.fields(), body);
        client
    }

    /// What reaches the agent next is this message.
    pub fn reached(&self, message: Message<'_>) -> Seen {
        let seen = Seen::read(self.agent.next());
        seen.is(message);
        seen
    }

    /// What reaches the agent next is this question, which the desk left to the test.
    pub fn asked(&self, ask: Ask) -> Seen {
        let seen = Seen::read(self.agent.next());
        assert_eq!(seen.said.ask, ask);
        seen
    }

    /// Sends a message that reaches the agent.
    pub fn talk(&self, who: Who, message: Message<'_>) -> (Client, Seen) {
        let client = self.says(who, message);
        (client, self.reached(message))
    }

    /// Whatever comes first: the message reaches the agent, or its sender has an answer.
    pub fn outcome(&self, client: &mut Client) -> Outcome {
        let start = tokio::time::Instant::now();
        loop {
            if let Some(call) = self.agent.next_soon() {
                return Outcome::Reached(Seen::read(call));
            }
            if !client.wire.is_open() {
                return Outcome::Answered(client.answer());
            }
            assert!(start.elapsed() < PATIENCE, "nothing became of the message");
        }
    }

    /// Sends a message that gets an answer without reaching the agent.
    pub fn stopped(&self, who: Who, message: Message<'_>) -> Refusal {
        let mut client = self.says(who, message);
        self.is_stopped(who, &mut client)
    }

    pub fn is_stopped(&self, who: Who, client: &mut Client) -> Refusal {
        let refusal = match self.outcome(client) {
            Outcome::Reached(seen) => panic!("it reached the agent: {:?}", seen.said),
            Outcome::Answered(answer) => Refusal::read(who.speak, &answer),
        };
        assert!(self.agent.is_left_alone_now(), "it reached the agent");
        refusal
    }

    /// Sends a message that finds its conversation busy.
    pub fn refused(&self, who: Who, message: Message<'_>) -> Refusal {
        let refusal = self.stopped(who, message);
        assert!(refusal.is_busy(), "{refusal:?}");
        refusal
    }

    /// Sends messages until they find this task to hold the conversation: it may not be known at once.
    pub fn refused_for(&self, who: Who, message: Message<'_>, task: &str) {
        let start = tokio::time::Instant::now();
        while self.refused(who, message).task() != Some(task) {
            assert!(start.elapsed() < PATIENCE, "{task} never holds it");
        }
    }

    /// Sends messages until the agent was asked so many times more, and one after that. All are refused.
    pub fn refused_though_asked(&self, who: Who, message: Message<'_>, times: usize) {
        let start = tokio::time::Instant::now();
        let wanted = self.desk.asked().len() + times;
        while self.desk.asked().len() < wanted {
            assert!(start.elapsed() < PATIENCE, "the agent is not asked");
            self.refused(who, message);
        }
        self.refused(who, message);
    }

    /// Sends a message that reaches the agent without a question.
    pub fn admitted(&self, who: Who, message: Message<'_>) -> (Client, Seen) {
        let before = self.desk.asked().len();
        let mut client = self.says(who, message);
        let seen = match self.outcome(&mut client) {
            Outcome::Reached(seen) => seen,
            Outcome::Answered(answer) => panic!("{message:?} is refused: {answer:?}"),
        };
        seen.is(message);
        let asked = self.desk.asked();
        assert_eq!(
            asked.len(),
            before,
            "the agent was asked: {:?}",
            &asked[before..]
        );
        (client, seen)
    }

    /// Sends a message again and again until it is not refused as busy.
    pub fn admitted_in_time(&self, who: Who, message: Message<'_>) -> (Client, Seen) {
        let start = tokio::time::Instant::now();
        while start.elapsed() < PATIENCE {
            let mut client = self.says(who, message);
            match self.outcome(&mut client) {
                Outcome::Reached(seen) => {
                    seen.is(message);
                    return (client, seen);
                }
                Outcome::Answered(answer) => {
                    let refusal = Refusal::read(who.speak, &answer);
                    assert!(refusal.is_busy(), "{refusal:?}");
                }
            }
        }
        panic!("it is never admitted: {message:?}");
    }

    /// One exchange ends: the agent answers that the task is completed, and the sender reads it.
    pub fn ends(&self, (mut client, seen): (Client, Seen), task: &str, context: &str) {
        self.desk.knows(task, context, "COMPLETED");
        let streams = seen.said.ask == Ask::Stream;
        seen.completes(task, context);
        if streams {
            assert_eq!(client.head().status(), 200);
            client.rest();
        } else {
            assert_eq!(client.answer().status(), 200);
        }
    }

    /// A message whose task goes on after its answer: it holds its conversation.
    pub fn leaves_working(&self, who: Who, message: Message<'_>, task: &str) {
        let context = message.context.unwrap();
        self.desk.knows(task, context, "WORKING");
        let (mut client, seen) = self.talk(who, message.at_once());
        seen.task(task, context, "WORKING");
        assert_eq!(client.answer().status(), 200);
    }

    /// The caller asks for a task; the desk answers.
    pub fn looks(&self, who: Who, task: &str) -> Answer {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{{"id":"{task}"}}}}"#);
        self.writes(who.speaking(J10), "POST /", &body).answer()
    }

    /// Requests that came to the gateway before are where they wait when this returns: it has one worker.
    pub fn catches_up(&self) {
        let mut client = self.gateway.client();
        for _ in 0..5 {
            assert_eq!(client.ask("GET /no/such/path", "", "").status(), 404);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let all_taken = std::thread::panicking() || self.agent.is_left_alone_now();
        assert!(all_taken, "the agent saw more than the test expects");
    }
}
