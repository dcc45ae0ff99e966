//! The form of INFO's lines.

/// Appends `name:value` lines.
macro_rules! lines {
    ($text:expr; $($name:literal: $value:expr,)*) => {
        $(
            $text.push_str(concat!($name, ":"));
            $text.push_str(&$value.to_string());
            $text.push_str("\r\n");
        )*
    };
}
pub(super) use lines;
