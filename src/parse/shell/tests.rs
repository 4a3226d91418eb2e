//! Lines and what is read in them. The notation: words with `|` between them, `<` and `>` for
//! redirects, `(…)` for a shell of its own, `?(…)` for what may run, `&(…)` for a chain.

use super::*;

fn value(value: &Value) -> String {
    match value {
        Value::Known(text) => text.escape_debug().to_string(),
        Value::Starts(text) => format!("{text}…"),
        Value::Files(text) => format!("glob:{text}"),
        Value::Any => "?".into(),
    }
}

fn show(nodes: &[Node]) -> String {
    let one = |node: &Node| match node {
        Node::Function(name, body) => format!("def {name}({})", show(body)),
        Node::Group(scope, inner) => {
            let sign = match scope {
                Scope::Same => "{",
                Scope::Own => "(",
                Scope::Maybe => "?(",
                Scope::Chain => "&(",
                Scope::Loop => "*(",
            };
            format!("{sign}{})", show(inner))
        }
        Node::Simple(simple) => {
            let mut parts: Vec<String> =
                simple.assignments.iter().map(|a| format!("{}={}", a.name, value(&a.value))).collect();
            parts.extend(simple.words.iter().map(|w| value(&w.value)));
            let mut out = parts.join("|");
            for redirect in &simple.redirects {
                out += &match redirect {
                    Redirect::Read(word) => format!(" <{}", value(&word.value)),
                    Redirect::Write(word) => format!(" >{}", value(&word.value)),
                    Redirect::Text(text) => format!(" <<{}", value(text)),
                    Redirect::Descriptor => " &".into(),
                    Redirect::Process(written) => (if *written { " >()" } else { " <()" }).into(),
                };
            }
            if simple.piped {
                out += " ^";
            }
            out
        }
    };
    nodes.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn reads(line: &str, want: &str) {
    let script = parse_line(line);
    assert_eq!((show(&script.nodes).as_str(), script.doubts), (want, vec![]), "{line}");
}

#[track_caller]
fn doubts(line: &str, want: &str) {
    let script = parse_line(line);
    assert!(!script.doubts.is_empty(), "{line} has no doubt: {}", show(&script.nodes));
    assert_eq!(show(&script.nodes), want, "{line}");
}

#[test]
fn operators_separate_commands() {
    reads("a b && c || d; e & f", "&(a|b; c; ?(d)); (e); f");
    reads("a | b |& c", "(a); (b & ^); (c ^)");
    reads("a\nb\n\nc", "a; b; c");
    reads("! a; time -p b", "?(a); b");
    reads("a # b && c", "a");
    reads("a#b \\# c", "a#b|#|c");
    reads("a\u{a0}b", "a\\u{a0}b");
    reads("pwd\rtouch f", "pwd\\rtouch|f");
}

#[test]
fn quotes_are_taken_away() {
    reads(r#"r''m "-r"f \/ 'a b' $'a\tb\x41\101' "#, "rm|-rf|/|a b|a\\tbAA");
    reads("al\\\nias x", "alias|x");
    reads("git \\\n push", "git|push");
    reads("echo ''", "echo|");
    reads("echo '~/x' ~/x ~ann/y", "echo|~/x|~/x|~ann/y");
    reads(r#"echo "a\$b\n""#, "echo|a$b\\\\n");
}

#[test]
fn what_is_not_known_stays_unknown() {
    reads("cat $X \"$X\" a$X src/\"$X\" -\"$X\"", "cat|?|?|?|src/…|?");
    reads("ls *.c src/*.c ./?x [a]b '*' \\*", "ls|glob:*.c|glob:src/*.c|glob:./?x|glob:[a]b|*|*");
    reads("$X a", "?|a");
    reads("echo $((1+2)) x$((1))", "echo|?|x…");
}

#[test]
fn brace_lists_become_words() {
    reads("{rm,-rf,/} x{1..3} a{b,c}d '{a,b}' {a}", "rm|-rf|/|x1|x2|x3|abd|acd|{a,b}|{a}");
    doubts("echo {1..99999}", "echo|?");
    doubts("echo {1..99999999999999999999999}", "echo|?");
}

#[test]
fn commands_inside_words_are_found() {
    reads("echo $(rm x) `rm y`", "(rm|x); (rm|y); echo|?|?");
    reads("cat <<E\n$\\\n(rm x)\nE", "(rm|x); cat <<?");
    reads("echo \"a $(rm x)\" 'b $(rm y)'", "(rm|x); echo|a …|b $(rm y)");
    reads("echo \"$\\\n(touch m)\"", "(touch|m); echo|?");
    reads("echo ${x:-$(rm y)} \"${x//a/`rm z`}\"", "(rm|y); (rm|z); echo|?|?");
    reads("echo $(( $(rm x) ))", "(rm|x); echo|?");
    reads("echo `echo \\`rm x\\``", "((rm|x); echo|?); echo|?");
    doubts("x[$(rm y)]=1", "(rm|y); x=1");
    reads("a=($(rm x) b) ls", "(rm|x); a=?|ls");
    reads("cat <(rm a) > >(rm b)", "(rm|a); (rm|b); cat|/dev/fd/… <() >()");
    reads("cat < <(rm c)", "(rm|c); cat <()");
    reads("echo > $(rm x)", "(rm|x); echo >?");
    reads("[[ -f $(rm x) && a == `rm y` ]] && ls", "&((rm|x); (rm|y); ls)");
    doubts("(( x = $(rm y) ))", "(rm|y)");
    doubts("echo \"${v@P}\"", "echo|?");
}

#[test]
fn here_documents_are_text() {
    reads("cat <<'E' > f\n$(rm x)\nE\nls", "cat <<$(rm x)\\n >f; ls");
    reads("cat <<E\n`rm x` $(rm y)\nE", "(rm|x); (rm|y); cat <<?");
    reads("cat <<-E\n\t$(rm x)\n\tE", "(rm|x); cat <<?");
    reads("cat <<A <<B\n1\nA\n2\nB\nrm x", "cat <<1\\n <<2\\n; rm|x");
    reads("cat <<'E' | wc -l\nhi\nE", "(cat <<hi\\n); (wc|-l ^)");
    reads("cat <<<\"a b\"", "cat <<a b");
    reads(
        "git commit -m \"$(cat <<'E'\n1) it's\n:) `x`\nE\n)\" && ls",
        "&((cat <<1) it\\'s\\n:) `x`\\n); git|commit|-m|1) it\\'s\\n:) `x`; ls)",
    );
    reads("echo \"$(cat <<'E'\n)\nE\nrm -rf /)\"", "(cat <<)\\n; rm|-rf|/); echo|?");
    doubts("cat > f << EOT", "cat >f <<");
    doubts("cat << 'E'\nrm x", "cat <<rm x\\n");
}

#[test]
fn compound_commands_hold_commands() {
    reads("(rm x); { rm y; }", "(rm|x); {rm|y)");
    reads("if a; then b; elif c; then d; else e; fi", "a; ?(b); ?(c; d); ?(e)");
    reads("for i in 1 $(rm x); do rm $i; done", "(rm|x); i=?; *(rm|?)");
    reads("while read l; do rm $l; done < f", " <f; *(read|l <f; rm|? <f)");
    reads("until a; do b; done", "*(a; b)");
    reads("case $(rm x) in a|b) rm y;; *) ls;; esac", "(rm|x); ?(rm|y); ?(ls)");
    doubts("for ((i=0;i<$(rm x);i++)); do ls; done", "(rm|x); i=?; rm=?; x=?; *(ls)");
    reads("for ((i=0;i<3;i++)); do ls; done", "i=?; *(ls)");
    reads("[[ 1 -eq 2 ]] && a; (( 1 < 2 ))", "&(a)");
    assert!(parse_line("[[ $x -gt 2 ]]").evaluated.danger().is_some());
    assert!(parse_line("x=3; [[ $x -gt 2 ]]").evaluated.danger().is_none());
    assert!(parse_line("x=3; ((x++)); for ((i=0;i<x;i++)); do ls; done").evaluated.danger().is_none());
    doubts("x[z]=1", "x=1");
    reads("x[0]=1", "x=1");
    reads("f() { rm x; } > q", "def f( >q; {rm|x >q))");
    reads("function g { rm x; }", "def g({rm|x))");
    reads("coproc rm x", "(rm|x)");
    reads("{ rm x; } > f 2>&1", " >f &; {rm|x >f &)");
}

#[test]
fn redirects_are_told_apart() {
    reads("a < b > c >> d <> e >| f &> g", "a <b >c >d >e >f >g");
    reads("a 2>&1 >&2 2>&- <&3 >&h 3>&4-", "a & & & & >h &");
    reads("> f", " >f");
    reads("PATH=/e:$PATH X=1 a b=c", "PATH=?|X=1|a|b=c");
    reads("export A=b", "export|A=b");
}

#[test]
fn what_does_not_parse_is_a_doubt() {
    for line in [
        "ls;; rm x",
        "echo 'a",
        "echo $(rm x",
        "echo `rm x",
        "if ls; then",
        "ls )",
        "select x in a; do rm x; done",
        "ls *(e:x:)",
        "echo ${x:-<(rm y)}",
        "a &&",
    ] {
        assert!(!parse_line(line).doubts.is_empty(), "{line}");
    }
    assert!(!parse_line(&"x".repeat(MAX_LINE + 1)).doubts.is_empty());
}

#[test]
fn deep_lines_end() {
    for (open, middle, close) in [
        ("(", "ls", ")"),
        ("$(", "ls", ")"),
        ("{ ", "ls", " ;}"),
        ("${x:-", "a", "}"),
        ("\"$(", "ls", ")\""),
        ("<(", "ls", ")"),
    ] {
        for n in [10, 500, 3000] {
            let line = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
            let script = parse_line(&line);
            assert!(!script.doubts.is_empty() || n == 10 || !script.nodes.is_empty(), "{open}");
        }
    }
}
