//! The grammar's tree → ours, command by command.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AndOrList, Assignment as AstAssignment, AssignmentName, AssignmentValue, BinaryPredicate, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr, FunctionDefinition, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, ProcessSubstitutionKind, RedirectList, SeparatorOperator,
    SimpleCommand, SubshellCommand, UnaryPredicate, Word,
};
use brush_parser::{ParserOptions, parse_tokens};

use super::account::{Ledger, NoTokens, tokens};
use super::depth::groups_too_deep;
use super::evaluated::names;
use super::{Assignment, Doubt, Evaluated, MAX_NESTING, Node, Redirect, Scope, Script, ShellWord, Simple, Value};

/// The walk over one text.
pub(super) struct Walk {
    /// How deep this text stands inside others.
    pub(super) depth: usize,
    nodes: Vec<Node>,
    doubts: Vec<Doubt>,
    pub(super) evaluated: Evaluated,
    ledger: Ledger,
    /// Redirects of the groups around the command at hand.
    outer: Vec<Redirect>,
    piped: bool,
    /// The text, if it holds a here-document.
    documents: String,
    /// Bytes of redirects that commands have from the groups around them.
    copied: usize,
    /// Whether `cat` is surely the program of that name.
    folds: bool,
}

/// Whether nothing in the line gives `cat` another meaning.
pub(super) fn foldable(line: &str) -> bool {
    !line.contains("alias") && !line.contains("function") && !line.replace([' ', '\t'], "").contains("cat()")
}

/// Takes a text apart. `folds`: see [`foldable`].
pub(super) fn script(text: &str, depth: usize, folds: bool) -> Script {
    let mut walk = Walk {
        depth,
        folds,
        nodes: Vec::new(),
        doubts: Vec::new(),
        evaluated: Evaluated::default(),
        ledger: Ledger::default(),
        outer: Vec::new(),
        piped: false,
        copied: 0,
        documents: if text.contains("<<") { text.to_owned() } else { String::new() },
    };
    walk.text(text);
    Script { nodes: walk.nodes, doubts: walk.doubts, evaluated: walk.evaluated }
}

/// Whether the text is a complete program, and does not end in a comment.
pub(super) fn complete(text: &str) -> bool {
    let whole = |text: &str| {
        tokens(text).is_ok_and(|found| {
            !groups_too_deep(&found.tokens) && parse_tokens(&found.tokens, &ParserOptions::default()).is_ok()
        })
    };
    whole(text) && !whole(&format!("{text} '"))
}

/// The text with the delimiters that its here-documents miss.
fn closed(text: &str) -> Option<String> {
    let mut candidate = text.to_owned();
    for (at, _) in text.match_indices("<<") {
        let tail = text.get(at + 2..)?.trim_start_matches(['-', ' ', '\t']);
        let tag: String = tail.chars().take_while(|c| !c.is_whitespace() && !";&|<>()".contains(*c)).collect();
        let tag: String = tag.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        if tag.is_empty() {
            continue;
        }
        candidate = format!("{candidate}\n{tag}");
        match tokens(&candidate) {
            Ok(_) => return Some(candidate),
            Err(NoTokens::OpenHereDocument) => {}
            Err(NoTokens::Other(_)) => return None,
        }
    }
    None
}

/// Most bytes that [`Walk::copied`] may come to.
const MAX_COPIED: usize = 16 << 20;

/// Bytes of text in a redirect.
fn weight(redirect: &Redirect) -> usize {
    match redirect {
        Redirect::Text(Value::Known(text)) => text.len(),
        _ => 0,
    }
}

impl Walk {
    pub(super) fn doubt(&mut self, what: &str, text: &str) {
        self.doubts.push(Doubt { what: what.to_owned(), text: text.to_owned() });
    }

    fn text(&mut self, text: &str) {
        let found = match tokens(text) {
            Ok(found) => found,
            Err(NoTokens::OpenHereDocument) => {
                // What stands there may be its text, or commands.
                self.doubt("a here-document without its end", text);
                let Some(Ok(found)) = closed(text).as_deref().map(tokens) else {
                    return self.doubt("a here-document that polctl cannot follow", text);
                };
                found
            }
            Err(NoTokens::Other(why)) => return self.doubt(&why, text),
        };
        for doubt in &found.doubts {
            self.doubt(doubt, text);
        }
        if sets_by_redirect(text) {
            self.doubt("`{NAME}` in front of a redirect sets that variable", text);
        }
        if groups_too_deep(&found.tokens) {
            return self.doubt("groups in groups deeper than polctl follows", text);
        }
        match parse_tokens(&found.tokens, &ParserOptions::default()) {
            Ok(program) => {
                self.ledger = Ledger::new(&found.tokens);
                for list in &program.complete_commands {
                    self.list(list);
                }
                if let Some(word) = self.ledger.unread() {
                    let what = format!("`{word}` belongs to no part");
                    self.doubt(&what, text);
                }
            }
            Err(error) => self.doubt(&error.to_string(), text),
        }
    }

    /// Commands in a text of their own: a substitution. Returns what it surely prints: `cat` of
    /// a here-document, the usual way to write a message of many lines.
    pub(super) fn substitution(&mut self, text: &str) -> Option<String> {
        if self.depth >= MAX_NESTING {
            self.doubt("commands inside commands deeper than polctl follows", text);
            return None;
        }
        if text.is_empty() {
            return None;
        }
        let inner = script(text, self.depth + 1, self.folds);
        let printed = match inner.nodes.as_slice() {
            [Node::Simple(Simple { assignments, words, redirects, .. })]
                if self.folds && inner.doubts.is_empty() && assignments.is_empty() =>
            {
                match (words.as_slice(), redirects.as_slice()) {
                    ([word], [Redirect::Text(Value::Known(text))]) if word.value.known() == Some("cat") => {
                        Some(text.trim_end_matches('\n').to_owned())
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        self.doubts.extend(inner.doubts);
        self.evaluated.add(&inner.evaluated);
        self.nodes.push(Node::Group(Scope::Own, inner.nodes));
        printed
    }

    /// What `read` adds to the tree, as one group.
    fn group(&mut self, scope: Scope, read: impl FnOnce(&mut Walk)) {
        let before = std::mem::take(&mut self.nodes);
        read(self);
        let inner = std::mem::replace(&mut self.nodes, before);
        self.nodes.push(Node::Group(scope, inner));
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            match item.1 {
                SeparatorOperator::Async => self.group(Scope::Own, |walk| walk.and_or(&item.0)),
                SeparatorOperator::Sequence => self.and_or(&item.0),
            }
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        if list.additional.is_empty() {
            return self.pipeline(&list.first);
        }
        self.group(Scope::Chain, |walk| {
            walk.pipeline(&list.first);
            for item in &list.additional {
                match item {
                    AndOr::And(pipeline) => walk.pipeline(pipeline),
                    AndOr::Or(pipeline) => walk.group(Scope::Maybe, |walk| walk.pipeline(pipeline)),
                }
            }
        });
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        if pipeline.bang {
            // It succeeds when its command fails: nothing is sure about where that led.
            return self.group(Scope::Maybe, |walk| walk.commands(pipeline));
        }
        self.commands(pipeline);
    }

    fn commands(&mut self, pipeline: &Pipeline) {
        let outer = self.piped;
        if let [only] = pipeline.seq.as_slice() {
            self.command(only);
        } else {
            for (index, command) in pipeline.seq.iter().enumerate() {
                self.piped = outer || index > 0;
                self.group(Scope::Own, |walk| walk.command(command));
            }
        }
        self.piped = outer;
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.redirected(redirects.as_ref(), |walk| walk.compound(compound));
            }
            Command::Function(function) => self.function(function),
            Command::ExtendedTest(test, redirects) => {
                self.redirected(redirects.as_ref(), |walk| walk.test(&test.expr));
            }
        }
    }

    /// A command with redirects that hold for everything in it.
    fn redirected(&mut self, redirects: Option<&RedirectList>, read: impl FnOnce(&mut Walk)) {
        let kept = self.outer.len();
        let mut own = Vec::new();
        for redirect in redirects.into_iter().flat_map(|list| &list.0) {
            self.redirect(redirect, &mut own);
        }
        if own.is_empty() {
            return read(self);
        }
        let text = "redirect of a group".to_owned();
        // Opening the file happens whatever the group runs.
        self.nodes.push(Node::Simple(Simple { redirects: own.clone(), text, ..Simple::default() }));
        self.outer.extend(own);
        read(self);
        self.outer.truncate(kept);
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(command) => {
                self.expandable(&command.expr.value);
                self.ledger.read_within(&command.expr.value);
                self.arithmetic(&command.expr.value);
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let texts: Vec<&str> = [&clause.initializer, &clause.condition, &clause.updater]
                    .into_iter()
                    .flatten()
                    .map(|expr| expr.value.as_str())
                    .collect();
                for text in &texts {
                    self.expandable(text);
                    self.ledger.read_within(text);
                }
                // The first part sets the counter, so that the others know it for a number.
                if let Some((name, value)) = texts.first().and_then(|text| text.split_once('=')) {
                    self.evaluated.assigned(name.trim(), &Value::Known(value.trim().to_owned()), false);
                }
                for text in &texts {
                    self.counted(text);
                }
                let set: BTreeSet<&str> = texts.iter().copied().flat_map(names).collect();
                set.into_iter().for_each(|name| self.assigned(name, Value::Any));
                self.group(Scope::Loop, |walk| walk.list(&clause.body.list));
            }
            CompoundCommand::BraceGroup(group) => self.group(Scope::Same, |walk| walk.list(&group.list)),
            CompoundCommand::Subshell(group) => self.group(Scope::Own, |walk| walk.list(&group.list)),
            CompoundCommand::ForClause(clause) => {
                self.ledger.read(&clause.variable_name);
                let mut values: Vec<Value> = Vec::new();
                for word in clause.values.iter().flatten() {
                    values.extend(self.words_of(word).into_iter().map(|word| word.value));
                }
                self.evaluated.looped(&clause.variable_name, &values);
                self.assigned(&clause.variable_name, Value::Any);
                self.group(Scope::Loop, |walk| walk.list(&clause.body.list));
            }
            CompoundCommand::CaseClause(clause) => {
                self.words_of(&clause.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.ledger.read(&pattern.value);
                        self.expandable(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.group(Scope::Maybe, |walk| walk.list(list));
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.group(Scope::Maybe, |walk| walk.list(&clause.then));
                for other in clause.elses.iter().flatten() {
                    self.group(Scope::Maybe, |walk| {
                        if let Some(condition) = &other.condition {
                            walk.list(condition);
                        }
                        walk.list(&other.body);
                    });
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.group(Scope::Loop, |walk| {
                    walk.list(&clause.0);
                    walk.list(&clause.1.list);
                });
            }
            CompoundCommand::Coprocess(coprocess) => {
                if let Some(name) = &coprocess.name {
                    self.ledger.read(&name.value);
                    // Its descriptors go into a variable of that name.
                    self.assigned(&name.value, Value::Any);
                }
                self.group(Scope::Own, |walk| walk.command(&coprocess.body));
            }
        }
    }

    /// `((…))` evaluates what variables hold, and it assigns. A shell that has no such command reads
    /// groups in groups, so what could be a command there is a doubt.
    fn arithmetic(&mut self, text: &str) {
        if text.contains(['$', '`']) {
            return self.doubt("arithmetic that may run what a variable holds", text);
        }
        let plain = text.trim();
        let changes = ["++", "--", "="].iter().any(|sign| plain.contains(sign));
        let no_command = changes && !plain.contains(|c: char| c.is_whitespace() || "<>|&;()".contains(c));
        if names(text).next().is_some() && !no_command {
            return self.doubt("arithmetic that may run what a variable holds", text);
        }
        self.counted(text);
        for name in names(text) {
            self.assigned(name, Value::Any);
        }
    }

    /// Arithmetic in which a variable of the line is used and set.
    fn counted(&mut self, text: &str) {
        if text.contains(['$', '`']) {
            return self.doubt("arithmetic that may run what a variable holds", text);
        }
        self.evaluated.strictly(text);
    }

    /// An index of an array is arithmetic, unless it is a number.
    fn index(&mut self, index: &str) {
        self.expandable(index);
        if !index.bytes().all(|b| b.is_ascii_digit()) {
            self.doubt("an index that is evaluated as arithmetic", index);
        }
    }

    fn function(&mut self, function: &FunctionDefinition) {
        self.ledger.read(&function.fname.value);
        let before = std::mem::take(&mut self.nodes);
        self.redirected(function.body.1.as_ref(), |walk| walk.compound(&function.body.0));
        let body = std::mem::replace(&mut self.nodes, before);
        self.nodes.push(Node::Function(function.fname.value.clone(), body));
    }

    fn test(&mut self, expr: &ExtendedTestExpr) {
        match expr {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a);
                self.test(b);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                self.test_word(word);
                let name = word.value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if evaluates(predicate) && !name {
                    self.doubt("a name of a variable that is evaluated", &word.value);
                }
            }
            ExtendedTestExpr::BinaryTest(operator, a, b) => {
                self.test_word(a);
                self.test_word(b);
                if is_arithmetic(operator) {
                    self.evaluated.strictly(&a.value);
                    self.evaluated.strictly(&b.value);
                }
            }
        }
    }

    fn test_word(&mut self, word: &Word) {
        self.ledger.read(&word.value);
        self.expandable(&word.value);
    }

    /// A variable that the shell itself sets.
    pub(super) fn assigned(&mut self, name: &str, value: Value) {
        let assignment = Assignment { name: name.to_owned(), value };
        let text = format!("{name}=…");
        self.nodes.push(Node::Simple(Simple { assignments: vec![assignment], text, ..Simple::default() }));
    }

    fn simple(&mut self, command: &SimpleCommand) {
        let mut simple = Simple { piped: self.piped, ..Simple::default() };
        // Here-documents of a group that feed every command of it.
        simple.redirects.clone_from(&self.outer);
        self.copied += self.outer.iter().map(weight).sum::<usize>();
        if self.copied > MAX_COPIED {
            self.doubt("a here-document for more commands than polctl follows", &command.to_string());
            simple.redirects.clear();
        }
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut simple, true);
        }
        if let Some(word) = &command.word_or_name {
            let words = self.words_of(word);
            simple.words.extend(words);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut simple, false);
        }
        let own = simple.redirects.get(self.outer.len()..).unwrap_or_default();
        simple.text = shown(command, &simple.words, own);
        simple.words.iter().for_each(|word| self.evaluated.word(&word.value));
        self.evaluated.command(&simple);
        self.nodes.push(Node::Simple(simple));
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, simple: &mut Simple, prefix: bool) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, &mut simple.redirects),
            CommandPrefixOrSuffixItem::Word(word) => {
                let words = self.words_of(word);
                simple.words.extend(words);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) if prefix => {
                self.ledger.read(&word.value);
                let read = self.assignment(assignment);
                simple.assignments.push(read);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                self.ledger.read(&word.value);
                match &assignment.value {
                    AssignmentValue::Scalar(_) => {
                        let word = self.shell_word(&word.value);
                        simple.words.push(word);
                    }
                    AssignmentValue::Array(_) => {
                        self.assignment(assignment);
                        let name = assignment.name.to_string();
                        simple.words.push(ShellWord::unknown(&word.value).with(Value::Starts(format!("{name}="))));
                    }
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(kind, inner) => {
                self.process(inner);
                let written = matches!(kind, ProcessSubstitutionKind::Write);
                simple.redirects.push(Redirect::Process(written));
                let raw = format!("{kind}{inner}");
                simple.words.push(ShellWord::unknown(&raw).with(Value::Starts("/dev/fd/".into())));
            }
        }
    }

    fn process(&mut self, inner: &SubshellCommand) {
        let outer = std::mem::take(&mut self.outer);
        self.group(Scope::Own, |walk| walk.list(&inner.list));
        self.outer = outer;
    }

    fn assignment(&mut self, assignment: &AstAssignment) -> Assignment {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name.clone(),
            AssignmentName::ArrayElementName(name, index) => {
                self.index(index);
                name.clone()
            }
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => {
                let value = self.word(&word.value);
                self.evaluated.assigned(&name, &value, is_arithmetic_alone(&word.value));
                value
            }
            AssignmentValue::Array(elements) => {
                self.ledger.read(&format!("{}=", assignment.name));
                self.ledger.read(&format!("{}+=", assignment.name));
                let mut known = true;
                for (index, word) in elements {
                    if let Some(index) = index {
                        self.index(&index.value);
                        self.ledger.read(&format!("[{}]={}", index.value, word.value));
                    }
                    self.ledger.read(&word.value);
                    if word.value.starts_with('[') {
                        self.doubt("an element that may be an index", &word.value);
                    }
                    let value = self.word(&word.value);
                    known &= value.known().is_some();
                    self.evaluated.word(&value);
                }
                // What its elements hold was looked at; it is no number.
                let told = if known { Value::Known(String::new()) } else { Value::Any };
                self.evaluated.assigned(&name, &told, false);
                Value::Any
            }
        };
        Assignment { name, value }
    }

    fn words_of(&mut self, word: &Word) -> Vec<ShellWord> {
        self.ledger.read(&word.value);
        self.words(&word.value)
    }

    fn target(&mut self, word: &Word) -> ShellWord {
        if word.value.starts_with('!') {
            // zsh overwrites what stands behind it.
            self.doubt("`>!` has another meaning in some shells", &word.value);
        }
        let mut words = self.words_of(word);
        match (words.pop(), words.is_empty()) {
            (Some(word), true) => word,
            _ => ShellWord::unknown(&word.value),
        }
    }

    /// The number before a redirect. Behind `<<` the tokenizer loses where a word ends, and takes
    /// `kill 9 > f` for `kill 9> f`.
    fn descriptor(&mut self, fd: Option<i32>) {
        let Some(fd) = fd else { return };
        self.ledger.read(&fd.to_string());
        let glued = ['<', '>'].iter().any(|sign| self.documents.contains(&format!("{fd}{sign}")));
        if !self.documents.is_empty() && !glued {
            self.doubt("a number before a redirect that may be a word", &fd.to_string());
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect, out: &mut Vec<Redirect>) {
        match redirect {
            IoRedirect::File(fd, kind, target) => {
                self.descriptor(*fd);
                self.file(kind, target, out);
            }
            IoRedirect::OutputAndError(word, _) => {
                let word = self.target(word);
                out.push(Redirect::Write(word));
            }
            IoRedirect::HereString(fd, word) => {
                self.descriptor(*fd);
                let word = self.target(word);
                out.push(Redirect::Text(word.value));
            }
            IoRedirect::HereDocument(fd, document) => {
                self.descriptor(*fd);
                self.ledger.read(&document.here_end.value);
                self.ledger.read(&document.doc.value);
                let tag = brush_parser::unquote_str(&document.here_end.value);
                self.ledger.read(&tag);
                let value = if document.requires_expansion {
                    self.expandable(&document.doc.value)
                } else {
                    Value::Known(document.doc.value.clone())
                };
                out.push(Redirect::Text(value));
            }
        }
    }

    fn file(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget, out: &mut Vec<Redirect>) {
        use IoFileRedirectKind as Kind;
        match (target, kind) {
            (IoFileRedirectTarget::Filename(word), Kind::Read) => {
                let word = self.target(word);
                out.push(Redirect::Read(word));
            }
            (IoFileRedirectTarget::Filename(word), _) => {
                let word = self.target(word);
                out.push(Redirect::Write(word));
            }
            (IoFileRedirectTarget::Fd(fd), _) => {
                self.ledger.read(&fd.to_string());
                out.push(Redirect::Descriptor);
            }
            (IoFileRedirectTarget::Duplicate(word), kind) => {
                let word = self.target(word);
                let descriptor = word.value.known().is_some_and(|text| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.bytes().all(|b| b.is_ascii_digit())
                });
                out.push(match (descriptor, kind) {
                    (true, _) => Redirect::Descriptor,
                    // `>&file` writes it, as does a variable that may hold a name.
                    (false, Kind::DuplicateInput) => Redirect::Read(word),
                    (false, _) => Redirect::Write(word),
                });
            }
            (IoFileRedirectTarget::ProcessSubstitution(kind, inner), _) => {
                self.process(inner);
                out.push(Redirect::Process(matches!(kind, ProcessSubstitutionKind::Write)));
            }
        }
    }
}

/// `{NAME}>file`: the shell opens it, and puts the descriptor's number into the variable.
fn sets_by_redirect(text: &str) -> bool {
    text.match_indices('}').any(|(at, _)| {
        let name = text.get(..at).and_then(|head| head.rsplit_once('{')).map_or("", |(_, name)| name);
        let redirects = text.get(at + 1..).is_some_and(|rest| rest.starts_with(['<', '>']));
        // `{a[x]}` evaluates its index, too.
        let plain = |c: char| !c.is_whitespace() && !",;(".contains(c);
        let parameter =
            text.get(..at).and_then(|head| head.rsplit_once('{')).is_some_and(|(head, _)| head.ends_with('$'));
        redirects
            && !parameter
            && !name.is_empty()
            && name.chars().all(plain)
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a word is one `$((…))` and nothing else, so that it is a number. `$((a);(b))` is a
/// substitution that holds groups.
fn is_arithmetic_alone(word: &str) -> bool {
    let Some(inner) = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) else { return false };
    let mut depth = 0_i32;
    let balanced = inner.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    });
    let plain = |c: char| c.is_ascii_alphanumeric() || "_$+-*/%<>=!&|^?:,() ".contains(c);
    balanced && depth == 0 && inner.chars().all(plain) && !inner.contains("$(")
}

/// Whether the operands are evaluated as arithmetic (Bash 6.4).
const fn is_arithmetic(operator: &BinaryPredicate) -> bool {
    use BinaryPredicate as P;
    matches!(
        operator,
        P::ArithmeticEqualTo
            | P::ArithmeticNotEqualTo
            | P::ArithmeticLessThan
            | P::ArithmeticLessThanOrEqualTo
            | P::ArithmeticGreaterThan
            | P::ArithmeticGreaterThanOrEqualTo
    )
}

/// Whether the operand is the name of a variable, whose index is evaluated (`-v`, `-R`).
const fn evaluates(predicate: &UnaryPredicate) -> bool {
    use UnaryPredicate as P;
    matches!(predicate, P::ShellVariableIsSetAndAssigned | P::ShellVariableIsSetAndNameRef)
}

/// A command on one line, as it was written.
fn shown(command: &SimpleCommand, words: &[ShellWord], redirects: &[Redirect]) -> String {
    let assigned = command.prefix.iter().flat_map(|prefix| &prefix.0).filter_map(|item| match item {
        CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(word.value.clone()),
        _ => None,
    });
    let files = redirects.iter().filter_map(|redirect| match redirect {
        Redirect::Write(word) => Some(format!("> {}", word.raw)),
        Redirect::Read(word) => Some(format!("< {}", word.raw)),
        Redirect::Text(_) => Some("<<…".to_owned()),
        Redirect::Descriptor | Redirect::Process(_) => None,
    });
    assigned.chain(words.iter().map(|word| word.raw.clone())).chain(files).collect::<Vec<_>>().join(" ")
}
