//! What real APIs answer, and the rules with which a user of `HttpClassifier` reads them.
//!
//! Each rule is written as a program would have it: by the API's own error field, never by a text
//! for people unless there is nothing else, and with `None` for whatever it does not know.

mod batches;
mod bodies;
mod duplicates;
mod limits;
