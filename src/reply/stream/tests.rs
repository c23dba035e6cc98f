//! Streams with a scripted agent and a paused clock.
