//! Names of random streams.

/// Name of a random stream of the user with the number `user`.
pub(super) fn of_user(name: &str, user: u32) -> String {
    if user == 0 { name.to_owned() } else { format!("{name}/{user}") }
}

/// Name of a random stream of the class with the number `class`.
pub(super) fn of_class(name: String, class: usize) -> String {
    if class == 0 { name } else { format!("{name}/class/{class}") }
}
