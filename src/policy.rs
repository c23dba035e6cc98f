//! What decides whether a call may go on: guards that a call takes on its way in, and that settle when dropped.
//! Policies see facts read from canonical text, never the client's spelling, and never talk to the agent.
pub mod conversation;
