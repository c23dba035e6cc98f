//! What the agent saw of a conversation, and how it answers.
use super::{
    agent::Call,
    desk::{self, Ask, Question},
    message::Message,
};

/// A request that the agent saw, and that waits for its answer. Dropped, it closes its connection.
pub struct Seen {
    pub call: Call,
    pub said: Question,
}

impl Seen {
    pub fn read(call: Call) -> Self {
        let said = Question::read(&call.asked);
        Self { call, said }
    }

    /// Asserts that it is this message, with what its sender said of conversation and task.
    pub fn is(&self, message: Message<'_>) {
        let ask = if message.streams {
            Ask::Stream
        } else {
            Ask::Send
        };
        assert_eq!(self.said.ask, ask, "{:?}", self.said);
        let id = &self.said.params["message"]["messageId"];
        assert_eq!(id, message.id, "{:?}", self.said);
        assert_eq!(self.said.task.as_deref(), message.task);
        if message.context.is_some() {
            assert_eq!(self.said.context.as_deref(), message.context);
        }
    }

    /// Answers a message with its task.
    pub fn task(mut self, id: &str, context: &str, state: &str) {
        let task = serde_json::json!({"task": desk::task(id, context, state)});
        self.call.write(desk::document(self.said.rest, &task));
        self.call.done();
    }

    /// Answers a question with the task, by itself.
    pub fn bare_task(mut self, id: &str, context: &str, state: &str) {
        let task = desk::task(id, context, state);
        self.call.write(desk::document(self.said.rest, &task));
        self.call.done();
    }

    /// Answers with an error.
    pub fn fails(mut self, error: desk::Error) {
        self.call.write(desk::refusal(self.said.rest, error));
        self.call.done();
    }

    /// Begins a stream with the task.
    pub fn begins(&mut self, id: &str, context: &str, state: &str) {
        self.call.begin();
        let task = serde_json::json!({"task": desk::task(id, context, state)});
        self.call.event(&desk::said(self.said.rest, &task));
    }

    /// The task's state in a stream.
    pub fn turns(&mut self, id: &str, context: &str, state: &str) {
        let update = desk::update(id, context, state);
        self.call.event(&desk::said(self.said.rest, &update));
    }

    /// Whatever was asked for, its task is completed.
    pub fn completes(mut self, id: &str, context: &str) {
        if self.said.ask == Ask::Stream {
            self.begins(id, context, "COMPLETED");
            self.call.end();
        } else {
            self.task(id, context, "COMPLETED");
        }
    }
}
