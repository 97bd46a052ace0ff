//! Keys of the radios, as a text file contains them.

use std::fmt;

use crate::reports::wire::Secret;
use ackclock_core::{ConfigError, Prefix};

/// Key of one radio, with the users about whom the radio may report.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Number of the key in reports.
    pub number: u16,
    /// Secret that signs the reports.
    pub secret: Secret,
    /// Networks of the users about whom the radio may report.
    pub users: Vec<Prefix>,
}

/// The output contains no secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("number", &self.number)
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

/// Reads a key file. Each line contains a number, a secret of 64 hexadecimal digits and at least one network of users;
/// lines that start with `#` and empty lines are ignored.
///
/// # Errors
/// Fails with the number of the first incorrect line, without the secret; also if the file contains no key.
pub fn parse(text: &str) -> Result<Vec<Key>, ConfigError> {
    let mut keys: Vec<Key> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |message: String| ConfigError::new(format!("line {}", number + 1), message);
        let key = key(line).map_err(wrong)?;
        if keys.iter().any(|other| other.number == key.number) {
            return Err(wrong(format!("key {} is defined twice", key.number)));
        }
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err(ConfigError::new("", "contains no key: `NUMBER SECRET NETWORK...`")),
        false => Ok(keys),
    }
}

fn key(line: &str) -> Result<Key, String> {
    let mut words = line.split_whitespace();
    let number = words
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or("the number of the key is not from 0 to 65535")?;
    let secret = words.next().and_then(secret).ok_or("the secret is not 64 hexadecimal digits")?;
    let users = words.map(str::parse).collect::<Result<Vec<_>, String>>()?;
    if users.is_empty() {
        return Err("no network of users follows the secret, for example 10.0.0.0/24".to_owned());
    }
    Ok(Key { number, secret, users })
}

fn secret(word: &str) -> Option<Secret> {
    let digits: Vec<u32> = word.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_names_its_incorrect_line_and_never_the_secret() {
        let secret = "0f".repeat(32);
        let keys = parse(&format!("# radios\n\n7 {secret} 10.0.0.0/24 2001:db8::/56\n")).unwrap();
        assert_eq!((keys[0].number, keys[0].secret, keys[0].users.len()), (7, [0x0f; 32], 2));
        for (text, expected) in [
            (String::new(), "contains no key"),
            (format!("x {secret} 10.0.0.1"), "line 1: the number"),
            (format!("1 {secret}0 10.0.0.1"), "line 1: the secret"),
            (format!("1 {secret}"), "line 1: no network"),
            (format!("1 {secret} 10.0.0.1/33"), "is not a network"),
            (format!("1 {secret} 10.0.0.1\n1 {secret} 10.0.0.2"), "line 2: key 1 is defined twice"),
        ] {
            let error = parse(&text).err().unwrap().to_string();
            assert!(error.contains(expected) && !error.contains(&secret), "{error}");
        }
    }
}
