//! The store that all replicas share: Redis or Valkey.
#[cfg(test)]
mod script;

#[cfg(test)]
mod tests;
