//! From a view to its readers: metric declarations, exposition text, a page, an HTTP server.

pub mod http;
pub mod metric;
pub mod negotiate;
pub mod page;
pub mod published;
pub mod text;
