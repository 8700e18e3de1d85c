//! Templates that print every value exactly, whatever it contains and wherever it is used.
//!
//! While a template renders, every printed value is stored and replaced by a token: a few private-use
//! characters that mean nothing to YAML. The text with its tokens is parsed, the tokens are replaced inside
//! the parsed scalars, and the result is a value that `yaml::emit` writes. So `{{ x }}`, `"{{ x }}"`, a key,
//! a block and a part of a string all give the exact text, and no value can end a scalar or begin another. A
//! filter on what a macro, `{% set %}` or `{% filter %}` block captured works on the template's text and
//! leaves the values in it alone; a filter on a value works on the value. Comments of a template are not
//! kept, except those before its first line of content.
//!
//! Templates can use only the given variables: no files, environment, network or includes, and a limited
//! amount of work. This module must not know what is rendered.

mod shape;

use crate::error::{At, Failure};
use crate::model::id::Digest;
use kube_yaml::node::Node;
use kube_yaml::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, ErrorKind, Output, OutputSpan, State, UndefinedBehavior, Value};
use serde_json::Value as Json;
use shape::OutputShape;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

/// Code of the failure that a variable does not exist; its field is the variable.
pub const UNDEFINED: &str = "template-undefined";

/// Work a rendering may do: about as many instructions, or 64 bytes of text each.
const FUEL: u64 = 50_000;
/// Longest source, longest rendered text and most bytes of printed values.
const BYTES: usize = 1024 * 1024;
/// Most different shapes of one template that are kept parsed.
const SHAPES: usize = 64;

pub struct Template {
    environment: Environment<'static>,
    /// In the repository: `templates/application.yaml`.
    file: String,
    /// The comment lines before its content, with their newlines.
    head: String,
    /// The first 12 hex digits of the source's SHA-256, where asked for.
    hash: Option<String>,
    /// Parsed output by its text with tokens: the same for all renderings that differ in values alone.
    shapes: Mutex<HashMap<String, Arc<OutputShape>>>,
}

/// The values that were printed, in order; kept in minijinja's state.
#[derive(Default)]
struct Printed {
    values: Vec<Json>,
    bytes: usize,
}

impl Template {
    /// Compiles `source`; `file` is its name in messages.
    ///
    /// # Errors
    /// A syntax error with its line, a source over 1 MiB, or one that holds U+E000 to U+E019.
    pub fn compile(file: &str, source: &str) -> Result<Self, Failure> {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        if source.len() > BYTES {
            return Err(Failure::new_input("template", "the template is longer than 1 MiB")
                .with_place(At::from_file(file)));
        }
        if let Some(line) = source.lines().position(|l| l.contains(shape::is_reserved)) {
            let why = "the template holds a private-use character between U+E000 and U+E019";
            return Err(
                Failure::new_input("template", why).with_place(make_line_place(file, convert_line(line + 1)))
            );
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // So that an error names the variable that does not exist.
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(64);
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()
                .map_err(|e| Failure::new(crate::error::FailureKind::Internal, "template", e.to_string()))?,
        );
        // What a macro or `{% set %}` block captured is template text with tokens in it ("safe"); everything
        // else is a value. No filter may declare a value to be template text.
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("yaml".into()));
        for filter in ["safe", "escape", "e"] {
            environment.remove_filter(filter);
        }
        environment.remove_global("debug");
        environment.set_formatter(put_aside);
        environment
            .add_template_owned(file.to_owned(), source.to_owned())
            .map_err(|e| make_jinja_failure(file, &e))?;
        let head =
            source.lines().take_while(|l| l.starts_with('#') && !l.contains("{{") && !l.contains("{%"));
        let head = head.fold(String::new(), |text, line| text + line.trim_end() + "\n");
        Ok(Self { environment, file: file.to_owned(), head, hash: None, shapes: Mutex::new(HashMap::new()) })
    }

    /// The same template, remembering a hash of its source.
    #[must_use]
    pub fn with_hash(mut self) -> Self {
        let source = self
            .environment
            .get_template(&self.file)
            .map(|t| Digest::hash_bytes(t.source().as_bytes()).format_short());
        self.hash = source.ok();
        self
    }

    /// The hash, for a template that remembers one.
    #[must_use]
    pub fn hash(&self) -> Option<&str> {
        self.hash.as_deref()
    }

    /// Its name in messages.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The comment lines before its content, each with a newline.
    #[must_use]
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Renders the one document, every value exact.
    ///
    /// # Errors
    /// A variable that does not exist, a null that is printed, too much work, output that is not a plain YAML
    /// document, or a key that occurs twice; each with the template's line.
    pub fn render_document(&self, context: &Value) -> Result<Json, Failure> {
        let template = self.environment.get_template(&self.file);
        let rendered = template.and_then(|t| t.render_captured(context.clone()));
        let mut rendered = rendered.map_err(|e| self.make_failure(&e))?;
        let text = rendered.output();
        if text.len() > BYTES {
            return Err(Failure::new_input("template", "the rendered text is longer than 1 MiB")
                .with_place(At::from_file(self.file.clone())));
        }
        let shape = self.find_shape(text, context)?;
        let printed = rendered.with_state_mut(|state| std::mem::take(get_printed(state)));
        shape.fill_values(&printed.values).map_err(|key| {
            Failure::new_input(
                "template",
                format!("the key {key:?} occurs twice in one mapping of the output"),
            )
            .with_place(At::from_file(self.file.clone()))
        })
    }

    /// The template's line that printed the node on `path` of the output, as exactly as known.
    #[must_use]
    pub fn locate_node(&self, context: &Value, path: &[String]) -> At {
        let template = self.environment.get_template(&self.file);
        let Ok((text, spans)) = template.and_then(|t| t.render_with_spans(context.clone())) else {
            return At::from_file(self.file.clone());
        };
        match parse::parse_one(&text) {
            Ok(root) => self.locate_source(&text, &spans, find_line(&root, path)),
            Err(_) => At::from_file(self.file.clone()),
        }
    }

    fn find_shape(&self, text: &str, context: &Value) -> Result<Arc<OutputShape>, Failure> {
        if let Some(shape) = lock_mutex(&self.shapes).get(text) {
            return Ok(Arc::clone(shape));
        }
        let shape =
            parse::parse_one(text).and_then(|root| OutputShape::from_node(&root)).map_err(|error| {
                let template = self.environment.get_template(&self.file);
                let spans = template.and_then(|t| t.render_with_spans(context.clone()));
                let at = match spans {
                    Ok((text, spans)) => self.locate_source(&text, &spans, error.at.line),
                    Err(_) => At::from_file(self.file.clone()),
                };
                Failure::new_input("template", format!("its output does not parse: {}", error.cause))
                    .with_place(at)
            })?;
        let shape = Arc::new(shape);
        let mut shapes = lock_mutex(&self.shapes);
        if shapes.len() < SHAPES {
            shapes.insert(text.to_owned(), Arc::clone(&shape));
        }
        Ok(shape)
    }

    /// The place in the template that wrote `line` of the output: its first piece that is not indentation.
    fn locate_source(&self, text: &str, spans: &[OutputSpan], line: u32) -> At {
        let mut start = 0;
        let mut shown = "";
        for (number, content) in text.split_inclusive('\n').enumerate() {
            if convert_line(number + 1) == line {
                shown = content;
                break;
            }
            start += content.len();
        }
        let offset = start + (shown.len() - shown.trim_start().len());
        let Some(span) = spans.iter().find(|s| s.output_range().contains(&offset)) else {
            return At::from_file(self.file.clone());
        };
        let into = &text[span.output_range().start..offset];
        let lines_in = match span.kind() {
            minijinja::OutputSpanKind::Raw => into.matches('\n').count(),
            _ => 0,
        };
        make_line_place(&self.file, convert_line(span.line() + lines_in))
    }

    fn make_failure(&self, error: &minijinja::Error) -> Failure {
        make_jinja_failure(&self.file, error)
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("file", &self.file).finish_non_exhaustive()
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn convert_line(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn make_line_place(file: &str, line: u32) -> At {
    At { file: file.to_owned(), line: Some(line), column: None }
}

fn get_printed<'a>(state: &'a mut State) -> &'a mut Printed {
    state.get_or_insert_extension_with(Printed::default)
}

/// minijinja's formatter: keeps the value and writes its token.
fn put_aside(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    let wrong = |why: &'static str| Err(minijinja::Error::new(ErrorKind::InvalidOperation, why));
    if value.is_safe() {
        return Ok(out.write_str(value.as_str().unwrap_or_default())?);
    }
    let json = match value.kind() {
        // Only the result of an `if` without `else` is undefined here; a variable that does not exist is an
        // error before.
        ValueKind::Undefined => return Ok(()),
        ValueKind::None => {
            return wrong("the value is null; print it inside {% if … %}, or as {{ … or \"\" }}");
        }
        ValueKind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => value.as_i64().map_or_else(|| Json::String(value.to_string()), Json::from),
        _ => return wrong("the value is a list or a mapping; print its members"),
    };
    let text = json.as_str().unwrap_or_default();
    if text.contains(shape::OPEN) {
        return wrong("the value holds U+E000; a filter cannot change what a macro or a set block captured");
    }
    let printed = get_printed(state);
    printed.bytes += text.len();
    if printed.bytes > BYTES {
        return wrong("the printed values are longer than 1 MiB");
    }
    let number = printed.values.len();
    printed.values.push(json);
    Ok(out.write_str(&shape::format_token(number))?)
}

/// A message with the template's line and, for a variable that does not exist, its name.
fn make_jinja_failure(file: &str, error: &minijinja::Error) -> Failure {
    let at = At { file: file.to_owned(), line: error.line().map(convert_line), column: None };
    let undefined = error.detail().and_then(|d| d.split_once('`')?.1.split_once("` is undefined"));
    if let Some((name, _)) = undefined {
        return Failure::new_input(UNDEFINED, "does not exist").with_place(at).with_field(name);
    }
    let mut cause = match error.kind() {
        ErrorKind::OutOfFuel => "the template does more work than one file needs".to_owned(),
        kind => error.detail().map_or_else(|| kind.to_string(), ToOwned::to_owned),
    };
    let mut inner = std::error::Error::source(error);
    while let Some(error) = inner {
        let _ = write!(cause, ": {error}");
        inner = error.source();
    }
    Failure::new_input("template", cause).with_place(at)
}

/// The line of the deepest node on `path` (keys, and indices of lists) that exists; for a member, the line of
/// its key.
fn find_line(root: &Node, path: &[String]) -> u32 {
    let mut line = root.at.line;
    let mut here = root;
    for part in path {
        let pair = here.pairs().iter().find(|p| &p.key == part);
        let item = part.parse::<usize>().ok().and_then(|i| here.items().get(i));
        let Some((next, at)) = pair.map(|p| (&p.value, p.at)).or(item.map(|i| (i, i.at))) else { break };
        line = at.line;
        here = next;
    }
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use minijinja::context;
    use serde_json::json;

    fn compile(source: &str) -> Template {
        Template::compile("t.yaml", source).unwrap()
    }

    fn failure(source: &str, context: &Value) -> String {
        match Template::compile("t.yaml", source).and_then(|t| t.render_document(context)) {
            Ok(value) => panic!("it renders: {value}"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn values_come_out_exact_wherever_they_stand() {
        let source = "\
bare: {{ x }}
double: \"{{ x }}\"
single: '{{ x }}'
part: a{{ x }}b
twice: {{ x }}{{ x }}
\"{{ x }}\": key
block: |
  {{ x }}
folded: >-
  {{ x }}
flow: [{{ x }}, {a: {{ x }}}]
upper: {{ x | upper }}
# {{ x }}
list:
- {{ x }}
";
        let template = compile(source);
        for x in [
            "no",
            "on",
            "y",
            "~",
            "null",
            "true",
            "12:30:45",
            "1_000",
            "1.10",
            "012e4",
            "",
            " ",
            "a: b",
            "a #b",
            "'",
            "\"",
            "\\",
            "{{ x }}",
            "{% if %}",
            "a\nb",
            "\n",
            "- a",
            "*a",
            "&a",
            "!a",
            "| a",
            "\u{85}\u{2028}\u{7f}\u{feff}",
            "\t",
            "---",
            "<<",
            "=",
            "\u{e002}",
            "\u{e012}",
        ] {
            let value = template.render_document(&context! { x => x }).unwrap();
            let want = json!({
                "bare": x, "double": x, "single": x, "part": format!("a{x}b"), "twice": format!("{x}{x}"), x: "key",
                "block": format!("{x}\n"), "folded": x, "flow": [x, {"a": x}], "upper": x.to_uppercase(), "list": [x],
            });
            assert_eq!(value, want, "{x:?}");
            assert_eq!(
                parse::parse_one(&kube_yaml::emit::format_document(&value)).unwrap().to_json(),
                want,
                "{x:?}"
            );
        }
    }

    #[test]
    fn text_that_a_macro_captured_keeps_its_structure_and_its_values() {
        let source = "\
{% macro both(key, value) %}
  {{ key }}: {{ value }}
  other: \"{{ value }}\"
{% endmacro %}
{% set joined %}{{ x }}/{{ x }}{% endset %}
labels:
{{ both(\"a\", x) }}
joined: {{ joined }}
more: {{ joined ~ x }}
";
        let value = compile(source).render_document(&context! { x => "b: #c" }).unwrap();
        assert_eq!(
            value,
            json!({"labels": {"a": "b: #c", "other": "b: #c"}, "joined": "b: #c/b: #c", "more": "b: #c/b: #cb: #c"})
        );
        let filtered =
            compile("{% filter upper %}a: {{ x }}{% endfilter %}\n").render_document(&context! { x => "b" });
        assert_eq!(filtered.unwrap(), json!({"A": "b"}), "the template's text, never a value");
        let cut = "{% set c %}{{ x }}{% endset %}\n\na: {{ c | replace(\"\\uE001\", \"\") }}\n";
        assert!(failure(cut, &context! { x => "b" }).starts_with("t.yaml:3: "));
    }

    #[test]
    fn types_survive_where_a_value_stands_alone() {
        let value = compile(
            "a: {{ 3 }}\nb: {{ true }}\nc: \"{{ 3 }}\"\nd: v{{ 3 }}\ne: {{ 1.5 }}\n{% if false %}x{% endif %}\n",
        );
        assert_eq!(
            value.render_document(&Value::UNDEFINED).unwrap(),
            json!({"a": 3, "b": true, "c": "3", "d": "v3", "e": "1.5"})
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_the_templates_line() {
        let context =
            context! { order => context! { name => "a" }, nothing => (), long => "x".repeat(40_000) };
        for (source, wanted) in [
            ("a: 1\nb: {{ order.nmae }}\n", "t.yaml:2: order.nmae: does not exist"),
            ("a: 1\n\nb: {{ oder.name }}\n", "t.yaml:3: oder: does not exist"),
            ("a: {{ order.nmae | upper }}\n", "t.yaml:1: order.nmae: does not exist"),
            ("{% if order.nmae %}a: 1{% endif %}\n", "t.yaml:1: order.nmae: does not exist"),
            ("a: {{ nothing }}\n", "t.yaml:1: the value is null"),
            ("a: {{ order }}\n", "t.yaml:1: the value is a list or a mapping"),
            ("a: {{ order.name\n", "t.yaml:1: "),
            ("a: 1\n{% include \"/etc/passwd\" %}\n", "t.yaml:2: "),
            (
                "a: 1\n{% for i in [1, 2] %}\nb: {{ i }}\n{% endfor %}\n",
                "t.yaml:3: its output does not parse: the key \"b\" is written twice",
            ),
            ("a: 1\n{# c\n#}\nb: [1\nc: 2\n", "t.yaml:5: its output does not parse: is not valid YAML"),
            ("a: 1\n---\nb: 1\n", "t.yaml:2: its output does not parse: a second document starts"),
            (
                "{{ order.name }}: 1\n{{ \"a\" }}: 2\n",
                "t.yaml: the key \"a\" occurs twice in one mapping of the output",
            ),
            ("{% for i in range(100000) %}a{% endfor %}", "t.yaml:1: the template does more work"),
            (
                "a: {% for i in range(100) %}{{ long }}{% endfor %}",
                "t.yaml:1: the printed values are longer than 1 MiB",
            ),
            ("a: !x {{ order.name }}\n", "t.yaml:1: its output does not parse: has a tag"),
            ("a: \u{e000}\n", "t.yaml:1: the template holds a private-use character"),
            ("a: {{ order.name | safe }}\n", "t.yaml:1: "),
            ("# only a comment\n", "t.yaml:1: its output does not parse: is empty"),
            ("{% extends \"t.yaml\" %}", "t.yaml:1: "),
        ] {
            let found = failure(source, &context);
            assert!(found.starts_with(wanted), "{source:?}: {found}");
        }
    }

    #[test]
    fn forged_tokens_are_refused() {
        let forged = context! { x => "\u{e000}\u{e010}\u{e001}", y => "secret" };
        assert!(failure("a: {{ y }}\nb: {{ x }}\n", &forged).starts_with("t.yaml:2: the value holds U+E000"));
    }

    #[test]
    fn the_comments_before_the_content_are_kept() {
        assert_eq!(compile("# a\n#b  \na: 1\n# c\n").head(), "# a\n#b\n");
        assert_eq!(compile("# {{ a }}\na: 1\n").head(), "");
        assert_eq!(compile("\n# a\na: 1\n").head(), "");
    }

    #[test]
    fn the_line_of_a_field_is_found_through_loops_and_conditions() {
        let template = compile(
            "a: 1\n{% if x %}\nb:\n  c: 1\n{% endif %}\nd:\n{% for i in [1, 2] %}\n- e: {{ i }}\n  f: 1\n{% endfor %}\n",
        );
        let context = context! { x => "1" };
        let line = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|p| (*p).to_owned()).collect();
            template.locate_node(&context, &path).line
        };
        assert_eq!(line(&["a"]), Some(1));
        assert_eq!(line(&["b"]), Some(3));
        assert_eq!(line(&["b", "c"]), Some(4));
        assert_eq!(line(&["b", "missing"]), Some(3));
        assert_eq!(line(&["d", "1", "f"]), Some(9));
    }
}
