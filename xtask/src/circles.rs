//! Checks that no files of a crate import each other in a circle.
//!
//! A file imports another file of its crate if it uses, outside tests, a name that the other file defines; re-exports
//! are followed to the definition, and a module may use the modules below it, of which it consists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Problems;
use crate::source::{bare, read, tracked};

/// Imports that do not count: file, imported file, and the reason.
const KEPT: &[(&str, &str, &str)] = &[
    ("crates/ackclock-link/src/link.rs", "crates/ackclock-link/src/serial/mod.rs", ANY),
    ("crates/ackclock-link/src/medium.rs", "crates/ackclock-link/src/constant.rs", ANY),
    ("crates/ackclock-tcp/src/config.rs", "crates/ackclock-tcp/src/cc/prague.rs", OPTIONS),
    ("crates/ackclock-tcp/src/sender/connection.rs", "crates/ackclock-tcp/src/sender/feedback.rs", PARTS),
    ("crates/ackclock-tcp/src/sender/connection.rs", "crates/ackclock-tcp/src/sender/requests.rs", PARTS),
];

const ANY: &str = "an enum of a trait stores the most frequent kind inline, for speed";
const OPTIONS: &str = "the options of a sender contain those of its congestion control";
const PARTS: &str = "a connection consists of parts that name its states";

/// Path of a module below its crate; empty for the root.
type Name = Vec<String>;

/// Checks every crate of the workspace.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let mut sources: BTreeMap<PathBuf, Vec<(Name, Module)>> = BTreeMap::new();
    for file in tracked(root, ".rs")? {
        let Some((home, name)) = place(&file) else { continue };
        let module = Module::new(file.clone(), &bare(&read(root, &file)?));
        sources.entry(home).or_default().push((name, module));
    }
    Ok(sources.into_values().flat_map(|modules| Crate::new(modules).problems()).collect())
}

/// Folder of the crate that a file belongs to, and the file's module.
fn place(file: &Path) -> Option<(PathBuf, Name)> {
    let parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let source = parts.iter().position(|part| part == "src")?;
    let mut name: Name = parts[source + 1..].to_vec();
    let last = name.pop()?;
    let stem = last.strip_suffix(".rs")?;
    if !["mod", "lib", "main"].contains(&stem) {
        name.push(stem.to_owned());
    }
    Some((parts[..source].iter().collect(), name))
}

/// A `use` of one name.
struct Import {
    path: Name,
    /// Name here; `*` for all names of a module.
    alias: String,
    is_public: bool,
}

/// One file.
struct Module {
    file: PathBuf,
    /// Modules below that only tests have.
    of_tests: Vec<String>,
    imports: Vec<Import>,
    /// Paths in code, beside those of `use`.
    paths: Vec<Name>,
    /// Words in code, beside those of `use`.
    words: BTreeSet<String>,
    /// Words after `fn`, `struct` and the like.
    defined: BTreeSet<String>,
}

const DEFINING: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

impl Module {
    /// Reads code without comments and literals.
    fn new(file: PathBuf, code: &str) -> Self {
        let (tokens, of_tests) = without_tests(tokens(code));
        let mut module = Self {
            file,
            of_tests,
            imports: Vec::new(),
            paths: Vec::new(),
            words: BTreeSet::new(),
            defined: BTreeSet::new(),
        };
        let mut at = 0;
        while at < tokens.len() {
            at += match tokens[at] {
                "use" => module.read_use(&tokens, at),
                token if is_word(token) => module.read_path(&tokens, at),
                _ => 1,
            };
        }
        module
    }

    /// Reads a `use` item; returns its length in tokens.
    fn read_use(&mut self, tokens: &[&str], at: usize) -> usize {
        let length = tokens[at..].iter().position(|&token| token == ";").unwrap_or(tokens.len() - at);
        let is_public = at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
        for path in use_paths(&tokens[at + 1..at + length]) {
            let (path, alias) = match path.iter().position(|word| word == "as") {
                Some(end) => (path[..end].to_vec(), path[end + 1].clone()),
                None => (path.clone(), path.last().cloned().unwrap_or_default()),
            };
            self.imports.push(Import { path, alias, is_public });
        }
        length
    }

    /// Reads words joined by `::`; returns their length in tokens.
    fn read_path(&mut self, tokens: &[&str], at: usize) -> usize {
        let mut path = vec![tokens[at].to_owned()];
        let mut end = at + 1;
        while tokens.get(end) == Some(&"::") && tokens.get(end + 1).is_some_and(|token| is_word(token)) {
            path.push(tokens[end + 1].to_owned());
            end += 2;
        }
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        let defining = if before == "!" && at > 1 { tokens[at - 2] } else { before };
        if DEFINING.contains(&defining) {
            self.defined.insert(path[0].clone());
        }
        if before != "." {
            self.words.insert(path[0].clone());
            if path.len() > 1 {
                self.paths.push(path);
            }
        }
        end - at
    }
}

/// All modules of a crate.
struct Crate {
    modules: BTreeMap<Name, Module>,
}

impl Crate {
    fn new(modules: Vec<(Name, Module)>) -> Self {
        let mut modules: BTreeMap<Name, Module> = modules.into_iter().collect();
        let of_tests: Vec<Name> = modules
            .iter()
            .flat_map(|(name, module)| module.of_tests.iter().map(|test| child(name, test)))
            .collect();
        modules.retain(|name, _| !of_tests.iter().any(|test| name.starts_with(test)));
        Self { modules }
    }

    /// One problem for each circle.
    fn problems(&self) -> Problems {
        let imports: BTreeMap<&Name, BTreeMap<Name, BTreeSet<String>>> =
            self.modules.keys().map(|name| (name, self.imports(name))).collect();
        let mut problems = Problems::new();
        let mut seen = BTreeSet::new();
        for &start in imports.keys() {
            let circle: BTreeSet<&Name> = reached(&imports, start)
                .into_iter()
                .filter(|&other| reached(&imports, other).contains(start))
                .collect();
            if circle.is_empty() || !seen.insert(circle.clone()) {
                continue;
            }
            let files: Vec<String> = circle.iter().map(|name| self.file(name)).collect();
            let mut problem = format!("{} files in a circle", files.len());
            for from in circle.iter().copied() {
                for (to, names) in imports[from].iter().filter(|(to, _)| circle.contains(to)) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    problem +=
                        &format!("\n    {} -> {}: {}", self.file(from), self.file(to), names.join(", "));
                }
            }
            problems.push(problem);
        }
        problems
    }

    fn file(&self, name: &Name) -> String {
        self.modules[name].file.display().to_string()
    }

    fn is_kept(&self, from: &Name, to: &Name) -> bool {
        KEPT.iter().any(|(file, imported, _)| self.file(from) == *file && self.file(to) == *imported)
    }

    /// Files that a module imports, with the names.
    fn imports(&self, name: &Name) -> BTreeMap<Name, BTreeSet<String>> {
        let module = &self.modules[name];
        let by_use = module
            .imports
            .iter()
            .filter(|import| !import.is_public || module.words.contains(&import.alias))
            .map(|import| &import.path);
        let mut found: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
        for path in by_use.chain(&module.paths) {
            if let Some((to, word)) = self.resolve(name, path, 0)
                && !to.starts_with(name)
                && !self.is_kept(name, &to)
            {
                found.entry(to).or_default().insert(word);
            }
        }
        found
    }

    /// Module that defines what a path in `from` leads to, and its name there; `None` for other crates and for modules.
    fn resolve(&self, from: &Name, path: &[String], depth: usize) -> Option<(Name, String)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.descend(&Name::new(), rest, depth),
            "self" => self.descend(from, rest, depth),
            "super" => self.descend(&from[..from.len().checked_sub(1)?].to_vec(), rest, depth),
            word if self.modules.contains_key(&child(from, word)) && !rest.is_empty() => {
                self.descend(&child(from, word), rest, depth)
            }
            word => self.through_import(from, word, rest, depth)?,
        }
    }

    fn descend(&self, from: &Name, path: &[String], depth: usize) -> Option<(Name, String)> {
        let (first, rest) = path.split_first()?;
        if first == "super" || first == "self" {
            return self.resolve(from, path, depth);
        }
        let below = child(from, first);
        if self.modules.contains_key(&below) && !rest.is_empty() {
            return self.descend(&below, rest, depth);
        }
        let module = self.modules.get(from)?;
        if !module.defined.contains(first)
            && let Some(found) = self.through_import(from, first, rest, depth)
        {
            return found;
        }
        let is_module = self.modules.contains_key(&below) && !module.defined.contains(first);
        (!is_module).then(|| (from.clone(), first.clone()))
    }

    /// Follows a `use` of `word`; the outer `None`: there is none.
    fn through_import(
        &self,
        from: &Name,
        word: &str,
        rest: &[String],
        depth: usize,
    ) -> Option<Option<(Name, String)>> {
        let module = self.modules.get(from).filter(|_| depth < 16)?;
        let follow = |path: &[String]| self.resolve(from, &[path, rest].concat(), depth + 1);
        if let Some(import) = module.imports.iter().find(|import| import.alias == word) {
            return Some(follow(&import.path));
        }
        module.imports.iter().filter(|import| import.alias == "*").find_map(|import| {
            let path = [&import.path[..import.path.len() - 1], &[word.to_owned()]].concat();
            follow(&path).filter(|(to, name)| self.modules[to].defined.contains(name)).map(Some)
        })
    }
}

fn child(name: &Name, below: &str) -> Name {
    name.iter().cloned().chain([below.to_owned()]).collect()
}

/// Modules that a module imports, directly or through others.
fn reached<'a>(
    imports: &'a BTreeMap<&Name, BTreeMap<Name, BTreeSet<String>>>,
    start: &Name,
) -> BTreeSet<&'a Name> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Name> = imports[start].keys().collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(imports[name].keys());
        }
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(rest) {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The tokens without items under `#[cfg(test)]`, and the modules that these items name.
fn without_tests(tokens: Vec<&str>) -> (Vec<&str>, Vec<String>) {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut modules = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&ATTRIBUTE) {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        let item = &tokens[at + ATTRIBUTE.len()..];
        let length = item_length(item);
        if let Some(module) = item[..length].iter().position(|&token| token == "mod") {
            modules.push(item[module + 1].to_owned());
        }
        at += ATTRIBUTE.len() + length;
    }
    (kept, modules)
}

/// Tokens up to the first `;` or closing brace outside brackets.
fn item_length(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, &token) in tokens.iter().enumerate() {
        match token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token == ";" || token == "}") {
            return at + 1;
        }
    }
    tokens.len()
}

/// Paths of a `use` item between `use` and `;`, one for each name.
fn use_paths(tokens: &[&str]) -> Vec<Name> {
    let mut paths = Vec::new();
    let mut prefixes: Vec<Name> = Vec::new();
    let mut path = Name::new();
    for &token in tokens {
        match token {
            "::" => {}
            "{" => prefixes.push(path.clone()),
            "," | "}" => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                if path.len() > prefix.len() {
                    paths.push(std::mem::take(&mut path));
                }
                path = if token == "," { prefix } else { prefixes.pop().unwrap_or_default() };
                if token == "}" {
                    path = prefixes.last().cloned().unwrap_or_default();
                }
            }
            word => path.push(word.to_owned()),
        }
    }
    if !path.is_empty() {
        paths.push(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Problems {
        let module = |&(file, text): &(&str, &str)| {
            let file = Path::new("crates/x/src").join(file);
            let (_, name) = place(&file).unwrap();
            (name, Module::new(file, &bare(text)))
        };
        Crate::new(files.iter().map(module).collect()).problems()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle_with_its_names() {
        let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A;");
        let files =
            [root, ("a.rs", "pub struct A(b::B); use crate::b;"), ("b.rs", "use crate::A; pub struct B;")];
        let expected = "2 files in a circle\n    crates/x/src/a.rs -> crates/x/src/b.rs: B\n    \
                        crates/x/src/b.rs -> crates/x/src/a.rs: A";
        assert_eq!(problems(&files), [expected], "by a path in code, and through a re-export");
        let grouped = ("b.rs", "use crate::{c::C, a::{A as Other, X}}; pub struct B;");
        assert_eq!(problems(&[files[0], files[1], grouped]).len(), 1);
        assert!(problems(&[root, files[1], ("b.rs", "pub struct B;")]).is_empty());
        assert!(problems(&[root, files[1], ("b.rs", "// use crate::A;\npub struct B;")]).is_empty());
    }

    #[test]
    fn a_module_may_use_those_below_it_and_they_its_names() {
        let parent = ("a/mod.rs", "mod b; pub struct A(b::B);");
        let below = ("a/b.rs", "use super::A; pub struct B;");
        assert!(problems(&[("lib.rs", "mod a;"), parent, below]).is_empty());
        let around = ("c.rs", "use crate::a::A; pub struct C;");
        let below = ("a/b.rs", "use super::A; use crate::c::C;");
        assert!(problems(&[("lib.rs", "mod a; mod c;"), parent, below, around]).is_empty());
        let parent = ("a/mod.rs", "mod b; pub struct A(crate::c::C);");
        assert_eq!(problems(&[("lib.rs", "mod a; mod c;"), parent, around]).len(), 1);
    }

    #[test]
    fn tests_do_not_count() {
        let root = ("lib.rs", "mod a; mod b; #[cfg(test)] mod bench;");
        let a = (
            "a.rs",
            "pub struct A; #[cfg(test)] use crate::b::B; #[cfg(test)] mod tests { use crate::b::B; }",
        );
        let bench = ("bench.rs", "use crate::b::B; pub struct Bench;");
        let b = ("b.rs", "use crate::a::A; pub struct B; #[cfg(test)] use crate::bench::Bench;");
        assert!(problems(&[root, a, b, bench]).is_empty());
    }
}
