//! Declaration of a registry by its rows.

/// Declares a registry: `registry! { /// docs  pub static LINKS: dyn LinkConfig = "link" { "constant" => constant::Constant, } }`.
/// The rows of a block `around { ... }` after the first block are components [`Around`](crate::around::Around) another
/// one of the same registry.
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        pub static $name:ident: $trait:ty = $kind:literal { $($row:literal => $config:ty),* $(,)? }
        $(around { $($outer_row:literal => $outer:ty),* $(,)? })?
    ) => {
        $(#[$meta])*
        pub static $name: $crate::Registry<$trait> = $crate::Registry {
            kind: $kind,
            entries: &[
                $($crate::Entry {
                    name: $row,
                    parse: &|table| Ok(::std::sync::Arc::new($crate::registry::read_table::<$config>(table)?)),
                    complete: &$crate::registry::complete_table::<$config>,
                    schema: &$crate::registry::schema_of::<$config>,
                    defaults: &$crate::registry::defaults_of::<$config>,
                },)*
                $($($crate::Entry {
                    name: $outer_row,
                    parse: &|table| {
                        Ok(::std::sync::Arc::new($crate::around::read_around::<$outer, _>(table, &$name)?))
                    },
                    complete: &|table| $crate::around::complete_around::<$outer, _>(table, &$name),
                    schema: &$crate::registry::schema_of::<$outer>,
                    defaults: &$crate::registry::defaults_of::<$outer>,
                },)*)?
            ],
            added: $crate::registry::Added::none(),
        };
    };
}
