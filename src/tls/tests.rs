//! Files that change, and names.
