//! The C functions of cvc5 (`cvc5/c/cvc5.h`, `cvc5/c/cvc5_parser.h`), and a solver made with
//! them.
//!
//! The only `unsafe` code. Its rules: a [`Session`] holds a reference to the [`Api`], so the
//! libraries stay open while it lives; its four objects are made together and go together, in
//! the reverse order; texts that the library returns are copied before the next call. The
//! functions catch C++ exceptions and keep them as a message, which is looked at after
//! each call.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::Error;

/// `CVC5_INPUT_LANGUAGE_SMT_LIB_2_6`.
const SMT_LIB: c_int = 0;

/// An object of the library that only the library looks into.
type Object = *mut c_void;
type Make = unsafe extern "C" fn(Object) -> Object;
type Free = unsafe extern "C" fn(Object);
type Text = unsafe extern "C" fn(Object) -> *const c_char;

/// The functions. They stay valid as long as the libraries are open.
#[derive(Debug)]
pub struct Api {
    manager_new: unsafe extern "C" fn() -> Object,
    manager_release: Free,
    manager_delete: Free,
    solver_new: Make,
    solver_delete: Free,
    solver_version: Text,
    set_option: unsafe extern "C" fn(Object, *const c_char, *const c_char),
    has_error: unsafe extern "C" fn() -> bool,
    error_message: unsafe extern "C" fn() -> *const c_char,
    symbols_new: Make,
    symbols_delete: Free,
    parser_new: unsafe extern "C" fn(Object, Object) -> Object,
    parser_release: Free,
    parser_delete: Free,
    parser_input: unsafe extern "C" fn(Object, c_int, *const c_char, *const c_char),
    parser_next: unsafe extern "C" fn(Object, *mut *const c_char) -> Object,
    command_name: Text,
    command_invoke: unsafe extern "C" fn(Object, Object, Object) -> *const c_char,
    _libraries: [Library; 2],
}

impl Api {
    /// Opens the libraries and finds the functions.
    pub fn open(solver: &Path, parser: &Path) -> Result<Api, libloading::Error> {
        // SAFETY: the caller knows the libraries to be cvc5's, whose initialisers do nothing
        // but set up the C++ runtime.
        let open = |path: &Path| unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let (s, p) = (open(solver)?, open(parser)?);
        Ok(Api {
            manager_new: function(&s, "cvc5_term_manager_new")?,
            manager_release: function(&s, "cvc5_term_manager_release")?,
            manager_delete: function(&s, "cvc5_term_manager_delete")?,
            solver_new: function(&s, "cvc5_new")?,
            solver_delete: function(&s, "cvc5_delete")?,
            solver_version: function(&s, "cvc5_get_version")?,
            set_option: function(&s, "cvc5_set_option")?,
            has_error: function(&s, "cvc5_has_error")?,
            error_message: function(&s, "cvc5_get_error_message")?,
            symbols_new: function(&p, "cvc5_symbol_manager_new")?,
            symbols_delete: function(&p, "cvc5_symbol_manager_delete")?,
            parser_new: function(&p, "cvc5_parser_new")?,
            parser_release: function(&p, "cvc5_parser_release")?,
            parser_delete: function(&p, "cvc5_parser_delete")?,
            parser_input: function(&p, "cvc5_parser_set_str_input")?,
            parser_next: function(&p, "cvc5_parser_next_command")?,
            command_name: function(&p, "cvc5_cmd_get_name")?,
            command_invoke: function(&p, "cvc5_cmd_invoke")?,
            _libraries: [s, p],
        })
    }

    /// The error of the last call, if it had one.
    fn checked(&self) -> Result<(), Error> {
        // SAFETY: both take nothing and look at this thread's last error.
        let message = unsafe { (self.has_error)().then(|| (self.error_message)()) };
        match message {
            None => Ok(()),
            Some(message) => Err(Error::Refused(copied(message))),
        }
    }

    /// An object that was just made; none is an error too.
    fn made(&self, object: Object) -> Result<Object, Error> {
        self.checked()?;
        if object.is_null() { Err(Error::Refused("an object cannot be made".into())) } else { Ok(object) }
    }
}

/// A function by name. `T` must be its type as the header of this library's version has it.
fn function<T: Copy>(library: &Library, name: &str) -> Result<T, libloading::Error> {
    // SAFETY: `T` is a function pointer of the declared type at each call above; the copy does
    // not outlive the library, which stands beside it in `Api`.
    unsafe { library.get::<T>(name).map(|symbol| *symbol) }
}

/// A text of the library, copied.
fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the library returns zero-terminated texts that stay until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What a command did.
#[derive(Debug)]
pub enum Step {
    /// Its answer, often empty.
    Said(Vec<u8>),
    /// It wants a fresh solver.
    Reset,
    /// It ends the conversation.
    Exit,
}

/// A solver with its parser.
#[derive(Debug)]
pub struct Session<'a> {
    api: &'a Api,
    manager: Object,
    solver: Object,
    symbols: Object,
    parser: Object,
}

impl<'a> Session<'a> {
    /// A fresh solver with these options.
    pub fn new(api: &'a Api, options: &[(&str, &str)]) -> Result<Session<'a>, Error> {
        let mut session = Session {
            api,
            manager: null_object(),
            solver: null_object(),
            symbols: null_object(),
            parser: null_object(),
        };
        // SAFETY: each object is made of those before it, which were checked not to be null.
        session.manager = api.made(unsafe { (api.manager_new)() })?;
        // SAFETY: as above.
        session.solver = api.made(unsafe { (api.solver_new)(session.manager) })?;
        for (name, value) in options {
            session.set(name, value)?;
        }
        // SAFETY: as above.
        session.symbols = api.made(unsafe { (api.symbols_new)(session.manager) })?;
        // SAFETY: as above.
        session.parser = api.made(unsafe { (api.parser_new)(session.solver, session.symbols) })?;
        Ok(session)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let text = |text: &str| CString::new(text).map_err(|_| Error::Input("an option holds a zero byte"));
        let (name, value) = (text(name)?, text(value)?);
        // SAFETY: the solver lives, and so do both texts during the call.
        unsafe { (self.api.set_option)(self.solver, name.as_ptr(), value.as_ptr()) };
        self.api.checked()
    }

    /// The version of the library.
    pub fn version(&self) -> Result<String, Error> {
        // SAFETY: the solver lives; the text is copied at once.
        let version = copied(unsafe { (self.api.solver_version)(self.solver) });
        self.api.checked()?;
        Ok(version)
    }

    /// Runs the commands of a text, which is one.
    pub fn run(&mut self, text: &CStr) -> Result<Step, Error> {
        // SAFETY: the parser lives and copies the texts.
        unsafe { (self.api.parser_input)(self.parser, SMT_LIB, text.as_ptr(), c"input".as_ptr()) };
        self.api.checked()?;
        let mut said = Vec::new();
        while let Some(command) = self.next()? {
            // SAFETY: the command lives until the parser is released.
            let name = copied(unsafe { (self.api.command_name)(command) });
            self.api.checked()?;
            match name.as_str() {
                "reset" => return Ok(Step::Reset),
                "exit" => return Ok(Step::Exit),
                _ => {}
            }
            // SAFETY: command, solver and symbols live; the text is copied at once.
            let text = copied(unsafe { (self.api.command_invoke)(command, self.solver, self.symbols) });
            self.api.checked()?;
            // The library adds the reason, the executable does not.
            let plain = if name == "check-sat" && text.starts_with("unknown") { "unknown\n" } else { &text };
            said.extend_from_slice(plain.as_bytes());
        }
        Ok(Step::Said(said))
    }

    /// The next command of the input, if there is one.
    fn next(&mut self) -> Result<Option<Object>, Error> {
        let mut message = null();
        // SAFETY: the parser lives, and `message` is a place for a pointer.
        let command = unsafe { (self.api.parser_next)(self.parser, &raw mut message) };
        if !message.is_null() {
            return Err(Error::Refused(format!("Parse Error: {}", copied(message))));
        }
        self.api.checked()?;
        Ok((!command.is_null()).then_some(command))
    }
}

fn null_object() -> Object {
    std::ptr::null_mut()
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let steps = [
            (self.parser, self.api.parser_release),
            (self.parser, self.api.parser_delete),
            (self.symbols, self.api.symbols_delete),
            (self.solver, self.api.solver_delete),
            (self.manager, self.api.manager_release),
            (self.manager, self.api.manager_delete),
        ];
        for (object, free) in steps {
            if !object.is_null() {
                // SAFETY: each object is freed once, those that need another one before it.
                unsafe { free(object) };
            }
        }
    }
}
